/* Asking MPS's control daemon: room for one more client, and daemons that answer badly or not at all. */
#include "../cases.h"
#include "../fake-mps/fake.h"

#include "base/proc.h"
#include "mps/control.h"
#include "mps/reach.h"

static const struct mps_request usual = {.mode = MPS_ON};
static struct mps_status status;
static struct error error;

static int running_setup(void **state)
{
	return fake_setup(state) == 0 && fake_prepare(MPS_AUTO, &status, &error) == 0 ? 0 : -1;
}

static void set_number(const char *name, unsigned int number)
{
	setenv(name, text_of("%u", number), 1);
}

/* Whether one more client has room beside so many, and how many were counted. */
static bool has_room(unsigned int clients, const struct mps_request *request, unsigned int counted)
{
	set_number("FAKE_MPS_CLIENTS", clients);
	int result = mps_prepare(request, &status, &error);

	assert_int_equal(status.clients, counted);
	assert_true(result == 0 || strstr(error.reason, " is full: "));
	return result == 0;
}

/* hardware.md */
TEST(capacity)
{
	static const unsigned int measured[][2] = {{1, 48}, {2, 48}, {3, 42}, {4, 31}, {8, 15}, {12, 10}, {16, 7}, {32, 3}};

	for (size_t i = 0; i < COUNT_OF(measured); i++) {
		struct mps_request request = {.mode = MPS_ON, .connections = measured[i][0]};
		unsigned int capacity = measured[i][1];

		assert_int_equal(mps_capacity(request.connections), capacity);
		assert_true(has_room(capacity - 1, &request, capacity - 1));
		assert_false(has_room(capacity, &request, capacity));
	}
}

/* A server has room on each GPU. 20 clients on three GPUs: 7, 7 and 6. */
TEST(several_gpus)
{
	static const char *const gpus[] = {"GPU-6d4fc782-c00f-df1c-1111-222222222222", "GPU-6d4fc789-c00f-df1c-1111-222222222222"};
	struct mps_request request = {.mode = MPS_ON};

	setenv("FAKE_MPS_GPUS", "3", 1);
	assert_true(has_room(20, &request, 7));
	assert_true(has_room(42, &request, 14));
	assert_false(has_room(43, &request, 15));
	request.gpus = gpus;
	request.gpu_count = 2;
	assert_true(has_room(20, &request, 6));
	assert_true(has_room(43, &request, 14));
	assert_false(has_room(45, &request, 15));
	request.gpus = gpus + 1;
	request.gpu_count = 1;
	assert_true(has_room(45, &request, 0));
}

/* The daemon starts another server for us. */
TEST(other_users_server)
{
	if (geteuid() != 0)
		skip_because("needs root");
	pid_t server = fork();

	if (server == 0)
		_exit(setuid(65534) == 0 && prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && raise(SIGSTOP) == 0 ? 0 : 1);
	assert_int_equal(waitpid(server, NULL, WUNTRACED), server);
	set_number("FAKE_MPS_SERVER", (unsigned int)server);
	bool room = has_room(20, &usual, 0);

	end_child(server);
	assert_true(room);
}

TEST(partial_answer)
{
	setenv("FAKE_MPS", "partial", 1);
	assert_true(has_room(20, &usual, 0));
}

/* A daemon that gives any answer is running. Lines that are no clients are not counted. */
TEST(garbage)
{
	setenv("FAKE_MPS", "garbage", 1);
	for (int i = 0; i < 20; i++) {
		assert_int_equal(fake_prepare(MPS_ON, &status, &error), 0);
		assert_each(status.running, true, status.started, false, status.clients, 0);
	}
}

TEST(dies)
{
	setenv("FAKE_MPS", "dies", 1);
	setenv("FAKE_MPS_CLIENTS", "1", 1);
	fake_refuses(MPS_ON, "does not answer: nvidia-cuda-mps-control died when it was asked");
	setenv("FAKE_MPS", "crash", 1);
	fake_refuses(MPS_ON, "does not answer: nvidia-cuda-mps-control died when it was asked");
}

/* A control program with these lines, first on PATH, instead of the fake. */
static void replace_control(const char *content)
{
	const char *control = fake_path("nvidia-cuda-mps-control");
	int file = open(control, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);

	assert_int_equal(write(file, content, strlen(content)), (ssize_t)strlen(content));
	close(file);
	setenv("PATH", text_of("%s:/usr/bin:/bin", fake_work), 1);
}

static int remove_control(void **state)
{
	unlink(fake_path("nvidia-cuda-mps-control"));
	unlink(fake_path("nvidia-cuda-mps-control.size"));
	return fake_teardown(state);
}

TEST_WITH(fake_setup, remove_control, cannot_be_run)
{
	replace_control("#!/no/such/interpreter\n");
	fake_refuses(MPS_ON, "/nvidia-cuda-mps-control cannot be run: No such file or directory");
	/* No control sequence reaches the user's terminal. */
	replace_control("#!/bin/sh\nprintf 'a\\033[2Jb\\nc'\nexit 1\n");
	fake_refuses(MPS_ON, "/mps cannot be asked: a?[2Jb");
}

/* The control program says how large the file of its answer has become. */
TEST_WITH(fake_setup, remove_control, answer_without_end)
{
	char size[32] = "";

	replace_control("#!/bin/sh\n"
	                "head -c 1000000 /dev/zero | tr '\\0' 7 2>/dev/null\n"
	                "exec 3>&1\n"
	                "stat -Lc %s /proc/self/fd/3 >\"$0.size\"\n");
	assert_true(has_room(0, &usual, 0));
	assert_true(proc_read_text(size, sizeof size, "%s", fake_path("nvidia-cuda-mps-control.size")) > 0);
	assert_true(strtoul(size, NULL, 10) <= MPS_CONTROL_ANSWER);
}

/* The kernel would end us by a signal where the file is to be larger. */
TEST(a_limit_for_files)
{
	with_limit(RLIMIT_FSIZE, 4096, assert_true(has_room(0, &usual, 0)));
}

/* A client on each of more GPUs than are counted; the other lines only look like clients. */
TEST_WITH(fake_setup, remove_control, lines_that_are_no_clients)
{
	replace_control("#!/bin/sh\n"
	                "echo 4194304\n"
	                "echo 1 1 4194304 GPU-0\n"
	                "echo 1 1 4194303 GPU-0\n"
	                "echo 1 1 4194304\n"
	                "echo 1 1 x GPU-0\n"
	                "echo x 1 4194304 GPU-0\n"
	                "printf '\\033[2J\\n\\n \\r\\n'\n"
	                "for gpu in $(seq 65); do echo 1 1 4194304 GPU-$gpu; done\n"
	                "echo 1 1 4194304 GPU-65\n"
	                "echo 99999999999999999999\n"
	                "printf '1 1 4194304'\n");
	assert_true(has_room(0, &usual, 1));
}

/* --- asked early ---------------------------------------------------------------------------------------------------- */

TEST(early_answer_is_taken_once)
{
	set_number("FAKE_MPS_CLIENTS", 3);
	mps_ask_early(&usual, false);
	assert_true(has_room(5, &usual, 3));
	assert_true(has_room(5, &usual, 5));
}

TEST(early_and_sent_away)
{
	setenv("FAKE_MPS", "busy", 1);
	mps_ask_early(&usual, false);
	assert_true(has_room(7, &usual, 7));
}

/* The tear-down checks that no child is left. */
TEST(early_and_forgotten)
{
	const struct mps_request none = {.mode = MPS_OFF};

	mps_forget();
	mps_ask_early(&usual, false);
	mps_forget();
	mps_forget();
	mps_ask_early(&none, false);
	assert_true(has_room(9, &usual, 9));
}

/* The reason is the one of the early question, whatever has failed since. */
TEST(early_and_impossible)
{
	with_limit(RLIMIT_NOFILE, 0, mps_ask_early(&usual, false));
	errno = EDOM;
	fake_refuses(MPS_ON, "cannot be run: Too many open files");
}

/* Of a program that executes itself again and again, with the same environment each time, and then stops. */
TEST(in_the_middle_of_an_exec)
{
	int none, closed_by_exec[2];
	unsigned int looks = 0, found = 0;
	siginfo_t stopped = {.si_pid = 0};

	assert_int_equal(pipe2(closed_by_exec, O_CLOEXEC), 0);
	pid_t pid = fork();

	if (pid == 0) {
		setenv("AGAIN", "[ $1 = 0 ] && kill -STOP $$ || exec sh -c \"$AGAIN\" sh $(($1 - 1))", 1);
		execlp("sh", "sh", "-c", "eval \"$AGAIN\"", "sh", "1000", NULL);
		_exit(1);
	}
	close(closed_by_exec[1]);
	assert_int_equal(read(closed_by_exec[0], &none, 1), 0);
	close(closed_by_exec[0]);
	for (; waitid(P_PID, (id_t)pid, &stopped, WSTOPPED | WEXITED | WNOHANG | WNOWAIT) == 0 && stopped.si_pid == 0; looks++)
		found += mps_reaches(pid);
	end_child(pid);
	assert_true(looks > 100);
	assert_int_equal(found, looks);
}

RUN_TESTS(running_setup, fake_teardown)
