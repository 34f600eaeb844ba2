#include "start.h"

#include "base/clock.h"
#include "cli/actions.h"
#include "cli/parse.h"
#include "state/kernels/counts_read.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define ARGUMENTS_MAX 256

/* Only returns if it fails. */
static void become(char *const arguments[], int output, struct error *error)
{
	char *copies[ARGUMENTS_MAX + 1] = {NULL};
	struct options options;
	int count = 0, nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);

	for (; count < ARGUMENTS_MAX && arguments[count]; count++)
		copies[count] = arguments[count];
	dup2(nothing, STDIN_FILENO);
	dup2(output, STDOUT_FILENO);
	optind = 0;
	if (arguments[count])
		error_set(error, "more than %d arguments", ARGUMENTS_MAX);
	else if (parse_options(&options, count, copies, error) == 0)
		action_run(&options, error);
}

/* The pipe is closed by the exec of COMMAND, or has the reason. */
int start_program(pid_t *pid, char *const arguments[], int output, struct error *error)
{
	struct error why = {.reason = ""};
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0 || (*pid = fork()) < 0)
		return error_set_errno(error, "no process can be started");
	if (*pid == 0) {
		setsid();
		become(arguments, output, &why);
		_exit(write(ends[1], &why, sizeof why) == sizeof why ? EXIT_FAILURE : EXIT_NOT_FOUND);
	}
	close(ends[1]);
	ssize_t got = read(ends[0], &why, sizeof why);

	while (got < 0 && errno == EINTR)
		got = read(ends[0], &why, sizeof why);
	close(ends[0]);
	if (got == 0)
		return 0;
	waitpid(*pid, NULL, 0);
	return error_pass(error, &why);
}

static bool has_ended(pid_t child)
{
	siginfo_t info = {.si_pid = 0};

	return waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || info.si_pid != 0;
}

int start_await(struct editor *editor, pid_t pid, bool is_new, struct error *error)
{
	double end = clock_ms() + START_SECONDS * 1000;
	struct counts counts;
	int result;

	do {
		result = editor_open(editor, pid, error) == SEGMENT_FOUND ? 0 : -1;
		if (result == 0 && is_new && counts_read(&editor->segment, pid, &counts, NULL) == 0 && counts.count == 0) {
			editor_close(editor);
			result = error_set(error, "pid %d: it has made no context on a GPU", (int)pid);
		}
		clock_pause_us(20000);
	} while (result < 0 && is_new && !has_ended(pid) && clock_ms() < end);
	return result;
}

const char *start_mps(const struct options *options)
{
	return options->mps.mode == MPS_OFF ? "off" : options->mps.mode == MPS_ON ? "on" : "auto";
}

void start_kill(pid_t pid, int signal)
{
	if (pid > 0) {
		kill(pid, signal);
		waitpid(pid, NULL, 0);
	}
}
