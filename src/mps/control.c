#include "control.h"

#include "base/clock.h"
#include "base/path.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define KILLED_MS 1000
#define POLL_US 50

extern char **environ;

/* The directories of NVIDIA's packages and container images, searched after PATH. */
static const char *const usual_directories[] = {
	"/usr/bin", "/usr/local/nvidia/bin", "/usr/local/cuda/bin", "/run/opengl-driver/bin", "/opt/bin",
};

/* --- the control program ---------------------------------------------------------------------------------- */

static bool is_in(char path[PATH_MAX], const char *directory, size_t length)
{
	return path_join_part(path, directory, length, MPS_CONTROL) && access(path, X_OK) == 0;
}

int mps_control_find(char path[PATH_MAX], struct error *error)
{
	const char *directories = getenv("PATH");
	bool found = false;

	while (directories && *directories && !found) {
		size_t length = strcspn(directories, ":");

		found = length > 0 && is_in(path, directories, length);
		directories += length + (directories[length] == ':');
	}
	for (size_t i = 0; !found && i < sizeof usual_directories / sizeof usual_directories[0]; i++)
		found = is_in(path, usual_directories[i], strlen(usual_directories[i]));
	return found ? 0
	             : error_set(error, "MPS: " MPS_CONTROL " is neither on PATH nor where NVIDIA installs it; "
	                                "put it on PATH");
}

/* --- running it ---------------------------------------------------------------------------------------------- */

struct call {
	const char *control;
	char *const *arguments;
	char *const *environment;
	const char *input;
	bool lasting;   /* it starts a process that outlives us: that one must hold nothing of ours */
	bool from_root; /* nor our working directory */
};

/* Like waitpid, for a limited time. Returns 0 for a child that still runs. */
static pid_t wait_for(pid_t child, int *status, long limit)
{
	double end = clock_ms() + (double)limit;
	pid_t ended = waitpid(child, status, WNOHANG);

	while (ended == 0 && clock_ms() < end) {
		clock_pause_us(POLL_US);
		ended = waitpid(child, status, WNOHANG);
	}
	return ended;
}

/* Waits for a child, and kills it when its time is over. */
static int await(pid_t child, long limit, bool leads_session)
{
	int status = 0;
	pid_t ended = wait_for(child, &status, limit);
	int result = MPS_CONTROL_DIED;

	if (ended == 0) {
		kill(leads_session ? -child : child, SIGKILL);
		wait_for(child, &status, KILLED_MS);
		result = MPS_CONTROL_OVERDUE;
	} else if (ended == child && WIFEXITED(status)) {
		result = WEXITSTATUS(status);
	}
	return result;
}

/* Memfds, not pipes: the daemon keeps its starter's descriptors. Never a standard descriptor, which may be free now but
 * is replaced later. */
static int memory_file(const char *content)
{
	ssize_t length = (ssize_t)strlen(content);
	int file = memfd_create("nvtaskset-mps", MFD_CLOEXEC);
	int moved = file >= 0 ? fcntl(file, F_DUPFD_CLOEXEC, STDERR_FILENO + 1) : -1;

	if (file >= 0)
		close(file);
	if (moved >= 0 && (write(moved, content, (size_t)length) != length || lseek(moved, 0, SEEK_SET) != 0)) {
		close(moved);
		moved = -1;
	}
	return moved;
}

/* Our caller's locks and pipes must not stay open as long as the daemon runs. */
static void close_inherited(void)
{
	DIR *directory = opendir("/proc/self/fd");
	struct dirent *entry;

	while (directory && (entry = readdir(directory))) {
		int file = atoi(entry->d_name);

		if (file > STDERR_FILENO && file != dirfd(directory))
			close(file);
	}
	if (directory)
		closedir(directory);
}

static void reset_signals(void)
{
	sigset_t none;

	for (int number = 1; number < NSIG; number++)
		signal(number, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Runs in the child. Errors are written where the control program would write them. */
static __attribute__((noreturn)) void become(const struct call *call, int input, int output)
{
	bool ready = dup2(input, STDIN_FILENO) >= 0 && dup2(output, STDOUT_FILENO) >= 0 &&
	             dup2(output, STDERR_FILENO) >= 0;

	if (call->lasting) {
		setsid();
		reset_signals();
		close_inherited();
	}
	if (call->from_root && chdir("/") < 0)
		ready = false;
	if (ready)
		execve(call->control, call->arguments, call->environment);
	dprintf(STDERR_FILENO, "%s: %s\n", call->control, strerror(errno));
	_exit(127);
}

/* Whoever started us may have set SIGCHLD to be ignored; then children leave no exit status. */
static void begin(struct mps_control_question *question, const struct call *call)
{
	const struct sigaction ordinary = {.sa_handler = SIG_DFL};
	int input = memory_file(call->input);

	*question = (struct mps_control_question){.child = -1, .output = memory_file("")};
	sigaction(SIGCHLD, &ordinary, &question->inherited);
	if (input >= 0 && question->output >= 0)
		question->child = fork();
	question->reason = errno;
	if (question->child == 0)
		become(call, input, question->output);
	if (input >= 0)
		close(input);
}

/* Returns the control program's exit status, or why there is none, and copies its output. */
static int end(struct mps_control_question *question, long limit, bool leads_session, char answer[MPS_CONTROL_ANSWER])
{
	int result = MPS_CONTROL_IMPOSSIBLE;
	ssize_t length = 0;

	if (question->child > 0) {
		result = await(question->child, limit, leads_session);
		length = pread(question->output, answer, MPS_CONTROL_ANSWER - 1, 0);
	}
	answer[length > 0 ? length : 0] = '\0';
	if (question->output >= 0)
		close(question->output);
	sigaction(SIGCHLD, &question->inherited, NULL);
	errno = question->reason;
	return result;
}

void mps_control_begin(struct mps_control_question *question, const char *control, const char *commands)
{
	char *arguments[] = {MPS_CONTROL, NULL};
	const struct call call = {
		.control = control,
		.arguments = arguments,
		.environment = environ,
		.input = commands,
	};

	begin(question, &call);
}

int mps_control_end(struct mps_control_question *question, long limit, char answer[MPS_CONTROL_ANSWER])
{
	return end(question, limit, false, answer);
}

/* --- starting the daemon ---------------------------------------------------------------------------------------- */

/* Variables that the control daemon must not inherit from whoever happens to start it: they would apply to
 * all clients. */
static bool is_private(const char *variable)
{
	static const char *const private[] = {
		"CUDA_VISIBLE_DEVICES=",
		"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=",
		"CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=",
		"CUDA_MPS_CLIENT_PRIORITY=",
		"CUDA_DEVICE_MAX_CONNECTIONS=",
		"LD_PRELOAD=",
		"NVTASKSET_",
	};
	bool found = false;

	for (size_t i = 0; i < sizeof private / sizeof private[0]; i++)
		found = found || strncmp(variable, private[i], strlen(private[i])) == 0;
	return found;
}

/* The daemon's environment: ours without the private variables, plus `added`. Allocated as one block; NULL if there is
 * no memory. */
static char **make_environment(const char *const *added)
{
	size_t count = 0, more = 0, kept = 0;

	while (environ[count])
		count++;
	while (added[more])
		more++;
	char **variables = malloc((count + more + 1) * sizeof *variables);

	for (size_t i = 0; variables && i < count; i++) {
		if (!is_private(environ[i]))
			variables[kept++] = environ[i];
	}
	for (size_t i = 0; variables && i < more; i++)
		variables[kept++] = (char *)added[i];
	if (variables)
		variables[kept] = NULL;
	return variables;
}

int mps_control_start(const char *control, const char *const *added, bool from_root, long limit,
                      char answer[MPS_CONTROL_ANSWER])
{
	char *arguments[] = {MPS_CONTROL, "-d", NULL};
	char **environment = make_environment(added);
	const struct call call = {
		.control = control,
		.arguments = arguments,
		.environment = environment,
		.input = "",
		.lasting = true,
		.from_root = from_root,
	};
	struct mps_control_question question;
	int result = MPS_CONTROL_IMPOSSIBLE;

	if (environment) {
		begin(&question, &call);
		result = end(&question, limit, true, answer);
	}
	free(environment);
	return result;
}
