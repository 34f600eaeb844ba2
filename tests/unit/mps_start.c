/* Starting MPS's control daemon: once, cleanly, and not before it is needed. */
#include "../fake-mps/fake.h"
#include "../skip.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>

/* The daemon's environment has such a line. */
static bool daemon_has(const char *start)
{
	FILE *file = fopen(fake_path("mps/running"), "r");
	char line[4096];
	bool found = false;

	assert_non_null(file);
	while (fgets(line, sizeof line, file))
		found = found || strncmp(line, start, strlen(start)) == 0;
	fclose(file);
	return found;
}

static void test_started_once(void **state)
{
	struct mps_status status;
	struct error error;

	(void)state;
	assert_int_equal(fake_prepare(MPS_AUTO, &status, &error), 0);
	assert_true(status.running && status.started);
	assert_int_equal(status.clients, 0);
	assert_string_equal(status.pipe_directory, fake_path("mps"));
	assert_int_equal(fake_prepare(MPS_AUTO, &status, &error), 0);
	assert_true(status.running && !status.started);
	assert_int_equal(fake_prepare(MPS_ON, &status, &error), 0);
}

static void test_not_started_for_others(void **state)
{
	struct mps_status status;
	struct error error;

	(void)state;
	fake_refuses(MPS_ON, "no control daemon runs in ");
	assert_int_equal(fake_prepare(MPS_OFF, &status, &error), 0);
	assert_false(status.running || status.started);
	assert_string_equal(getenv("CUDA_MPS_PIPE_DIRECTORY"), "/dev/null");
	assert_int_equal(access(fake_path("mps/running"), F_OK), -1);
}

/* Variables that would otherwise apply to every later client. */
static void test_clean_environment(void **state)
{
	static const char *const private[] = {"CUDA_VISIBLE_DEVICES", "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE",
	                                      "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "CUDA_MPS_CLIENT_PRIORITY",
	                                      "CUDA_DEVICE_MAX_CONNECTIONS", "NVTASKSET_PARTITION",
	                                      "LD_PRELOAD"};
	struct mps_status status;
	struct error error;

	(void)state;
	for (size_t i = 0; i < sizeof private / sizeof private[0]; i++)
		setenv(private[i], "1", 1);
	assert_int_equal(fake_prepare(MPS_AUTO, &status, &error), 0);
	for (size_t i = 0; i < sizeof private / sizeof private[0]; i++) {
		unsetenv(private[i]);
		assert_false(daemon_has(private[i]));
	}
	assert_true(daemon_has("PATH="));
	assert_true(daemon_has("PWD=/\n"));
}

/* A relative directory is only right in our working directory. */
static void test_relative_directory(void **state)
{
	struct mps_status status;
	struct error error;
	int here = open(".", O_RDONLY | O_CLOEXEC);

	(void)state;
	assert_int_equal(chdir(fake_work), 0);
	setenv("CUDA_MPS_PIPE_DIRECTORY", "mps", 1);
	int result = fake_prepare(MPS_AUTO, &status, &error);

	assert_int_equal(fchdir(here), 0);
	close(here);
	assert_int_equal(result, 0);
	assert_true(daemon_has("CUDA_MPS_PIPE_DIRECTORY=mps"));
}

/* A descriptor that our caller left open, a lock say, does not live on in the daemon. */
static void test_holds_nothing(void **state)
{
	struct mps_status status;
	struct error error;
	int ends[2];

	(void)state;
	setenv("FAKE_MPS_LINGER", "2", 1);
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(fake_prepare(MPS_AUTO, &status, &error), 0);
	close(ends[1]);
	struct pollfd reading = {.fd = ends[0], .events = POLLIN};

	assert_int_equal(poll(&reading, 1, 1000), 1);
	assert_int_equal(reading.revents, POLLHUP);
	close(ends[0]);
}

/* Signals that our caller has blocked are not blocked in the daemon. */
static void test_blocks_no_signal(void **state)
{
	struct mps_status status;
	struct error error;
	sigset_t blocked, before;
	char path[64], line[128];
	int pid = 0;

	(void)state;
	setenv("FAKE_MPS_LINGER", "20", 1);
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGTERM);
	assert_int_equal(sigprocmask(SIG_BLOCK, &blocked, &before), 0);
	int result = fake_prepare(MPS_AUTO, &status, &error);

	assert_int_equal(sigprocmask(SIG_SETMASK, &before, NULL), 0);
	assert_int_equal(result, 0);
	FILE *file = fopen(fake_path("mps/nvidia-cuda-mps-control.pid"), "r");

	assert_non_null(file);
	assert_int_equal(fscanf(file, "%d", &pid), 1);
	fclose(file);
	snprintf(path, sizeof path, "/proc/%d/status", pid);
	file = fopen(path, "r");
	assert_non_null(file);
	while (fgets(line, sizeof line, file) && strncmp(line, "SigBlk:", 7) != 0)
		continue;
	fclose(file);
	kill(pid, SIGKILL);
	assert_string_equal(line, "SigBlk:\t0000000000000000\n");
}

static void test_waits_until_it_answers(void **state)
{
	struct mps_status status;
	struct error error;

	(void)state;
	setenv("FAKE_MPS", "slow-start", 1);
	assert_int_equal(fake_prepare(MPS_AUTO, &status, &error), 0);
	assert_true(status.running && status.started);
	assert_int_equal(access(fake_path("mps/running"), F_OK), 0);
}

/* Exits with 2 if it started the daemon, 1 if it uses a running one. */
static pid_t prepare_in_child(void)
{
	pid_t child = fork();

	if (child == 0) {
		struct mps_status status;
		struct error error;
		int result = fake_prepare(MPS_AUTO, &status, &error);

		_exit(result < 0 || !status.running ? 0 : 1 + status.started);
	}
	return child;
}

static int exit_status(pid_t child)
{
	int status;

	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void test_several_at_once(void **state)
{
	pid_t children[4];
	int sum = 0;

	(void)state;
	setenv("FAKE_MPS", "slow-start", 1);
	for (int i = 0; i < 4; i++)
		children[i] = prepare_in_child();
	for (int i = 0; i < 4; i++) {
		int status = exit_status(children[i]);

		assert_true(status > 0);
		sum += status;
	}
	assert_int_equal(sum, 4 + 1);
}

/* A service manager may start programs without them. */
static void test_no_standard_descriptors(void **state)
{
	pid_t child = fork();

	(void)state;
	if (child == 0) {
		struct mps_status status;
		struct error error;

		close(STDIN_FILENO);
		close(STDOUT_FILENO);
		close(STDERR_FILENO);
		_exit(fake_prepare(MPS_AUTO, &status, &error) == 0 && status.started ? 7 : 1);
	}
	assert_int_equal(exit_status(child), 7);
}

/* If our caller ignores SIGCHLD, it stays ignored in the program that we execute. */
static void test_ignored_children(void **state)
{
	struct mps_status status;
	struct error error;

	(void)state;
	signal(SIGCHLD, SIG_IGN);
	int result = fake_prepare(MPS_AUTO, &status, &error);

	assert_true(signal(SIGCHLD, SIG_DFL) == SIG_IGN);
	assert_int_equal(result, 0);
	assert_true(status.started);
}

static void test_does_not_start(void **state)
{
	(void)state;
	setenv("FAKE_MPS", "no-start", 1);
	fake_refuses(MPS_AUTO, "the control daemon does not start: Failed to create the log directory; --mps off");
}

/* A path too long for the daemon's socket: the daemon would start, and end without a message. */
static void test_long_directory(void **state)
{
	char path[] = "/0123456789012345678901234567890123456789012345678"
		      "90123456789012345678901234567890123456789012345678";

	(void)state;
	assert_int_equal(strlen(path), 100);
	setenv("CUDA_MPS_PIPE_DIRECTORY", path, 1);
	fake_refuses(MPS_ON, "too long for the path of a socket");
	path[99] = '\0';
	setenv("CUDA_MPS_PIPE_DIRECTORY", path, 1);
	fake_refuses(MPS_ON, "no control daemon runs in /0123");
}

static void test_kept_away(void **state)
{
	(void)state;
	setenv("CUDA_MPS_PIPE_DIRECTORY", "/dev/null", 1);
	fake_refuses(MPS_AUTO, "CUDA_MPS_PIPE_DIRECTORY is /dev/null, which keeps programs away from MPS");
}

/* Runs as another user, if we may become one: nothing is closed to root. */
static void test_closed_directory(void **state)
{
	(void)state;
	if (geteuid() != 0)
		skip_because("needs root");
	assert_int_equal(mkdir(fake_path("mps"), 0700), 0);
	assert_int_equal(chmod(fake_work, 0755), 0);
	pid_t child = fork();

	if (child == 0) {
		struct mps_status status;
		struct error error;
		bool refused = setuid(65534) == 0 && fake_prepare(MPS_AUTO, &status, &error) < 0;

		_exit(refused && strstr(error.reason, "belongs to user 0 and is closed to you") ? 7 : 1);
	}
	assert_int_equal(exit_status(child), 7);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, fake_setup, fake_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_started_once),     TEST(test_not_started_for_others),
		TEST(test_clean_environment), TEST(test_relative_directory),
		TEST(test_holds_nothing),    TEST(test_blocks_no_signal),
		TEST(test_waits_until_it_answers),
		TEST(test_several_at_once),  TEST(test_no_standard_descriptors),
		TEST(test_ignored_children), TEST(test_does_not_start),
		TEST(test_long_directory),   TEST(test_kept_away),
		TEST(test_closed_directory),
	};

	return cmocka_run_group_tests_name("mps_start", tests, NULL, NULL);
}
