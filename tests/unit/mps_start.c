/* Starting MPS's control daemon: once, cleanly, and not before it is needed. */
#include "../cases.h"
#include "../fake-mps/fake.h"

#include <poll.h>

static struct mps_status status;
static struct error error;

/* The first line of a file that begins so. */
static bool find_line(const char *path, const char *start, char line[4096])
{
	FILE *file = fopen(path, "r");
	bool found = false;

	assert_non_null(file);
	while (!found && fgets(line, 4096, file))
		found = strncmp(line, start, strlen(start)) == 0;
	fclose(file);
	return found;
}

/* The daemon's environment has such a line. */
static bool daemon_has(const char *start)
{
	char line[4096];

	return find_line(fake_path("mps/running"), start, line);
}

/* Variables that would otherwise apply to every later client. */
TEST(clean_environment)
{
	static const char *const private[] = {
		"CUDA_VISIBLE_DEVICES", "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT",
		"CUDA_MPS_CLIENT_PRIORITY", "CUDA_DEVICE_MAX_CONNECTIONS", "NVTASKSET_PARTITION", "LD_PRELOAD",
		"CUDA_MPS_ENABLE_PER_CTX_DEVICE_MULTIPROCESSOR_PARTITIONING", "CUDA_MPS_SM_PARTITION",
	};

	for (size_t i = 0; i < COUNT_OF(private); i++)
		setenv(private[i], "1", 1);
	assert_int_equal(fake_prepare(MPS_AUTO, &status, &error), 0);
	for (size_t i = 0; i < COUNT_OF(private); i++) {
		unsetenv(private[i]);
		assert_false(daemon_has(private[i]));
	}
	assert_true(daemon_has("PATH="));
	assert_true(daemon_has("PWD=/\n"));
}

/* A relative directory is only right in our working directory. */
TEST(relative_directory)
{
	int here = open(".", O_RDONLY | O_CLOEXEC);

	assert_int_equal(chdir(fake_work), 0);
	setenv("CUDA_MPS_PIPE_DIRECTORY", "mps", 1);
	int result = fake_prepare(MPS_AUTO, &status, &error);

	assert_int_equal(fchdir(here), 0);
	close(here);
	assert_int_equal(result, 0);
	assert_true(daemon_has("CUDA_MPS_PIPE_DIRECTORY=mps"));
}

/* A descriptor that our caller left open, a lock say, does not live on in the daemon. */
TEST(holds_nothing)
{
	int ends[2];

	setenv("FAKE_MPS_LINGER", "2", 1);
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(fake_prepare(MPS_AUTO, &status, &error), 0);
	close(ends[1]);
	struct pollfd reading = {.fd = ends[0], .events = POLLIN};

	assert_int_equal(poll(&reading, 1, 1000), 1);
	assert_int_equal(reading.revents, POLLHUP);
	close(ends[0]);
}

/* What our caller has blocked is not blocked in the daemon. The fake is a shell, which blocks signals while it starts a program. */
TEST(blocks_no_signal)
{
	sigset_t blocked, before;
	bool blocks = true;
	char line[4096];

	setenv("FAKE_MPS_LINGER", "600", 1);
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGTERM);
	assert_int_equal(sigprocmask(SIG_BLOCK, &blocked, &before), 0);
	int result = fake_prepare(MPS_AUTO, &status, &error);

	assert_int_equal(sigprocmask(SIG_SETMASK, &before, NULL), 0);
	assert_int_equal(result, 0);
	assert_true(find_line(fake_path("mps/nvidia-cuda-mps-control.pid"), "", line));
	int pid = atoi(line);

	for (int looks = 0; looks < 60000 && blocks; looks++) {
		assert_true(find_line(text_of("/proc/%d/status", pid), "SigBlk:", line));
		blocks = strcmp(line, "SigBlk:\t0000000000000000\n") != 0;
		usleep(1000);
	}
	kill(pid, SIGKILL);
	assert_false(blocks);
}

static int exit_status(pid_t child)
{
	int end;

	assert_int_equal(waitpid(child, &end, 0), child);
	assert_true(WIFEXITED(end));
	return WEXITSTATUS(end);
}

TEST(several_at_once)
{
	pid_t children[4];
	int sum = 0;

	setenv("FAKE_MPS", "slow-start", 1);
	for (int i = 0; i < 4; i++) {
		children[i] = fork();
		if (children[i] == 0) {
			bool runs = fake_prepare(MPS_AUTO, &status, &error) == 0 && status.running;

			_exit(runs ? 1 + status.started : 0);
		}
	}
	for (int i = 0; i < 4; i++) {
		int end = exit_status(children[i]);

		assert_true(end > 0);
		sum += end;
	}
	assert_int_equal(sum, 4 + 1);
}

/* A service manager may start programs without them. */
TEST(no_standard_descriptors)
{
	pid_t child = fork();

	if (child == 0) {
		close(STDIN_FILENO);
		close(STDOUT_FILENO);
		close(STDERR_FILENO);
		_exit(fake_prepare(MPS_AUTO, &status, &error) == 0 && status.started ? 7 : 1);
	}
	assert_int_equal(exit_status(child), 7);
}

/* If our caller ignores SIGCHLD, it stays ignored in the program that we execute. */
TEST(ignored_children)
{
	signal(SIGCHLD, SIG_IGN);
	int result = fake_prepare(MPS_AUTO, &status, &error);

	assert_true(signal(SIGCHLD, SIG_DFL) == SIG_IGN);
	assert_each(result, 0, status.started, true);
}

/* A path too long for the daemon's socket: the daemon would start, and end without a message. */
TEST(long_directory)
{
	char path[] = "/0123456789012345678901234567890123456789012345678"
		      "90123456789012345678901234567890123456789012345678";

	assert_int_equal(strlen(path), 100);
	setenv("CUDA_MPS_PIPE_DIRECTORY", path, 1);
	fake_refuses(MPS_ON, "too long for the path of a socket");
	path[99] = '\0';
	setenv("CUDA_MPS_PIPE_DIRECTORY", path, 1);
	fake_refuses(MPS_ON, "no control daemon runs in /0123");
}

TEST(kept_away)
{
	setenv("CUDA_MPS_PIPE_DIRECTORY", "/dev/null", 1);
	fake_refuses(MPS_AUTO, "CUDA_MPS_PIPE_DIRECTORY is /dev/null, which keeps programs away from MPS");
}

/* Runs as another user, if we may become one: nothing is closed to root. */
TEST(closed_directory)
{
	if (geteuid() != 0)
		skip_because("needs root");
	assert_int_equal(mkdir(fake_path("mps"), 0700), 0);
	assert_int_equal(chmod(fake_work, 0755), 0);
	pid_t child = fork();

	if (child == 0) {
		bool refused = setuid(65534) == 0 && fake_prepare(MPS_AUTO, &status, &error) < 0;

		_exit(refused && strstr(error.reason, "belongs to user 0 and is closed to you") ? 7 : 1);
	}
	assert_int_equal(exit_status(child), 7);
}

RUN_TESTS(fake_setup, fake_teardown)
