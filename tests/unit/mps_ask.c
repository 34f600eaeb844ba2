/* Asking MPS's control daemon: room for one more client, and daemons that answer badly or not at all. */
#include "../fake-mps/fake.h"
#include "../skip.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>

static int running_setup(void **state)
{
	struct mps_status status;
	struct error error;

	return fake_setup(state) == 0 && fake_prepare(MPS_AUTO, &status, &error) == 0 ? 0 : -1;
}

static void set_number(const char *name, unsigned int number)
{
	char text[16];

	snprintf(text, sizeof text, "%u", number);
	setenv(name, text, 1);
}

/* Whether one more client has room beside so many, and how many were counted. */
static bool has_room(unsigned int clients, const struct mps_request *request, unsigned int counted)
{
	struct mps_status status;
	struct error error = {.reason = ""};

	set_number("FAKE_MPS_CLIENTS", clients);
	int result = mps_prepare(request, &status, &error);

	assert_int_equal(status.clients, counted);
	assert_true(result == 0 || strstr(error.reason, " is full: "));
	return result == 0;
}

/* docs/hardware.md */
static void test_capacity(void **state)
{
	static const unsigned int measured[][2] = {{1, 48}, {2, 48}, {3, 42},  {4, 31},
	                                           {8, 15}, {12, 10}, {16, 7}, {32, 3}};

	(void)state;
	for (size_t i = 0; i < sizeof measured / sizeof measured[0]; i++) {
		struct mps_request request = {.mode = MPS_ON, .connections = measured[i][0]};
		unsigned int capacity = measured[i][1];

		assert_int_equal(mps_capacity(request.connections), capacity);
		assert_true(has_room(capacity - 1, &request, capacity - 1));
		assert_false(has_room(capacity, &request, capacity));
	}
}

static void test_environment(void **state)
{
	struct mps_request request = {.mode = MPS_ON, .connections = 4};

	(void)state;
	assert_true(has_room(0, &request, 0));
	assert_string_equal(getenv("CUDA_DEVICE_MAX_CONNECTIONS"), "4");
	assert_string_equal(getenv("CUDA_MPS_PIPE_DIRECTORY"), fake_path("mps"));
	request.connections = 0;
	assert_true(has_room(0, &request, 0));
	assert_string_equal(getenv("CUDA_DEVICE_MAX_CONNECTIONS"), "4");
	setenv("CUDA_DEVICE_MAX_CONNECTIONS", "33", 1);
	assert_true(has_room(0, &request, 0));
	assert_string_equal(getenv("CUDA_DEVICE_MAX_CONNECTIONS"), "8");
}

/* A server has room on each GPU. 20 clients on three GPUs: 7, 7 and 6. */
static void test_several_gpus(void **state)
{
	static const char *const gpus[] = {"GPU-6d4fc782-c00f-df1c-1111-222222222222",
	                                   "GPU-6d4fc789-c00f-df1c-1111-222222222222"};
	struct mps_request request = {.mode = MPS_ON};

	(void)state;
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
static void test_other_users_server(void **state)
{
	const struct mps_request request = {.mode = MPS_ON};

	(void)state;
	if (geteuid() != 0)
		skip_because("needs root");
	pid_t server = fork();

	if (server == 0)
		_exit(setuid(65534) == 0 && prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && raise(SIGSTOP) == 0 ? 0 : 1);
	assert_int_equal(waitpid(server, NULL, WUNTRACED), server);
	set_number("FAKE_MPS_SERVER", (unsigned int)server);
	bool room = has_room(20, &request, 0);

	kill(server, SIGKILL);
	assert_int_equal(waitpid(server, NULL, 0), server);
	assert_true(room);
}

static void test_own_server(void **state)
{
	const struct mps_request request = {.mode = MPS_ON};

	(void)state;
	set_number("FAKE_MPS_SERVER", (unsigned int)getpid());
	assert_true(has_room(3, &request, 3));
	assert_false(has_room(20, &request, 20));
}

static void test_partial_answer(void **state)
{
	const struct mps_request request = {.mode = MPS_ON};

	(void)state;
	setenv("FAKE_MPS", "partial", 1);
	assert_true(has_room(20, &request, 0));
}

/* A daemon that gives any answer is running. Lines that are no clients are not counted. */
static void test_garbage(void **state)
{
	struct mps_status status;
	struct error error;

	(void)state;
	setenv("FAKE_MPS", "garbage", 1);
	for (int i = 0; i < 20; i++) {
		assert_int_equal(fake_prepare(MPS_ON, &status, &error), 0);
		assert_true(status.running);
		assert_false(status.started);
		assert_int_equal(status.clients, 0);
	}
}

static void test_dies(void **state)
{
	(void)state;
	setenv("FAKE_MPS", "dies", 1);
	setenv("FAKE_MPS_CLIENTS", "1", 1);
	fake_refuses(MPS_ON, "does not answer: nvidia-cuda-mps-control died when it was asked");
	setenv("FAKE_MPS", "crash", 1);
	fake_refuses(MPS_ON, "does not answer: nvidia-cuda-mps-control died when it was asked");
}

static void test_not_permitted(void **state)
{
	(void)state;
	setenv("FAKE_MPS", "forbidden", 1);
	fake_refuses(MPS_AUTO, "/mps cannot be asked: Failed to connect: Permission denied");
}

/* A control program with these lines, first on PATH, instead of the fake. */
static void replace_control(const char *content)
{
	static char path[PATH_MAX];
	const char *control = fake_path("nvidia-cuda-mps-control");
	int file = open(control, O_WRONLY | O_CREAT | O_CLOEXEC, 0700);

	assert_int_equal(write(file, content, strlen(content)), (ssize_t)strlen(content));
	close(file);
	snprintf(path, sizeof path, "%s:/usr/bin:/bin", fake_work);
	setenv("PATH", path, 1);
}

static int remove_control(void **state)
{
	unlink(fake_path("nvidia-cuda-mps-control"));
	return fake_teardown(state);
}

static void test_cannot_be_run(void **state)
{
	(void)state;
	replace_control("#!/no/such/interpreter\n");
	fake_refuses(MPS_ON, "/nvidia-cuda-mps-control: No such file or directory");
}

/* A client on each of more GPUs than are counted; the other lines only look like clients. */
static void test_lines_that_are_no_clients(void **state)
{
	const struct mps_request request = {.mode = MPS_ON};

	(void)state;
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
	assert_true(has_room(0, &request, 1));
}

/* No control sequence reaches the user's terminal. */
static void test_escape_sequences(void **state)
{
	(void)state;
	replace_control("#!/bin/sh\nprintf 'a\\033[2Jb\\nc'\nexit 1\n");
	fake_refuses(MPS_ON, "/mps cannot be asked: a?[2Jb");
}

static void test_overdue(void **state)
{
	(void)state;
	setenv("FAKE_MPS", "hang", 1);
	mps_patience_ms = 100;
	fake_refuses(MPS_AUTO, "/mps does not answer: end it");
}

/* --- asked early ---------------------------------------------------------------------------------------------------- */

static void test_early_answer_is_taken_once(void **state)
{
	const struct mps_request request = {.mode = MPS_ON};

	(void)state;
	set_number("FAKE_MPS_CLIENTS", 3);
	mps_ask_early(&request);
	assert_true(has_room(5, &request, 3));
	assert_true(has_room(5, &request, 5));
}

static void test_early_and_no_daemon(void **state)
{
	const struct mps_request request = {.mode = MPS_AUTO};
	struct mps_status status;
	struct error error;

	(void)state;
	mps_ask_early(&request);
	assert_int_equal(mps_prepare(&request, &status, &error), 0);
	assert_true(status.started && status.running);
}

static void test_early_and_sent_away(void **state)
{
	const struct mps_request request = {.mode = MPS_ON};

	(void)state;
	setenv("FAKE_MPS", "busy", 1);
	mps_ask_early(&request);
	assert_true(has_room(7, &request, 7));
}

static void test_early_and_overdue(void **state)
{
	const struct mps_request request = {.mode = MPS_ON};

	(void)state;
	setenv("FAKE_MPS", "hang", 1);
	mps_patience_ms = 100;
	mps_ask_early(&request);
	fake_refuses(MPS_ON, "/mps does not answer: end it");
}

/* The tear-down checks that no child is left. */
static void test_early_and_forgotten(void **state)
{
	const struct mps_request request = {.mode = MPS_ON}, none = {.mode = MPS_OFF};

	(void)state;
	mps_forget();
	mps_ask_early(&request);
	mps_forget();
	mps_forget();
	mps_ask_early(&none);
	assert_true(has_room(9, &request, 9));
}

static void test_early_where_it_cannot_be_asked(void **state)
{
	const struct mps_request request = {.mode = MPS_AUTO};

	(void)state;
	setenv("CUDA_MPS_PIPE_DIRECTORY", "/dev/null", 1);
	mps_ask_early(&request);
	fake_refuses(MPS_AUTO, "/dev/null, which keeps programs away from MPS");
}

/* The reason is the one of the early question, whatever has failed since. */
static void test_early_and_impossible(void **state)
{
	const struct mps_request request = {.mode = MPS_ON};
	struct rlimit limit, none;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = limit;
	none.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	mps_ask_early(&request);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	errno = EDOM;
	fake_refuses(MPS_ON, "cannot be run: Too many open files");
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, running_setup, fake_teardown)
#define TEST_REPLACED(test) cmocka_unit_test_setup_teardown(test, fake_setup, remove_control)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_capacity),           TEST(test_environment),
		TEST(test_several_gpus),       TEST(test_other_users_server),
		TEST(test_own_server),         TEST(test_partial_answer),
		TEST(test_garbage),            TEST(test_dies),
		TEST(test_not_permitted),      TEST(test_overdue),
		TEST(test_early_answer_is_taken_once), TEST(test_early_and_sent_away),
		TEST(test_early_and_overdue),  TEST(test_early_and_forgotten),
		TEST(test_early_where_it_cannot_be_asked), TEST(test_early_and_impossible),
		cmocka_unit_test_setup_teardown(test_early_and_no_daemon, fake_setup, fake_teardown),
		TEST_REPLACED(test_cannot_be_run), TEST_REPLACED(test_escape_sequences),
		TEST_REPLACED(test_lines_that_are_no_clients),
	};

	return cmocka_run_group_tests_name("mps_ask", tests, NULL, NULL);
}
