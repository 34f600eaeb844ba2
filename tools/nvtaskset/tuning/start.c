#include "start.h"

#include "base/clock.h"
#include "cli/actions.h"
#include "cli/parse.h"
#include "keeper.h"
#include "state/kernels/counts_read.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORDS_MAX 20

/* The parser sees a word in the place of COMMAND: it is not to look at that. */
int start_parse(struct options *options, char *const words[], char *command[], struct error *error)
{
	char *line[WORDS_MAX];
	int count = 0;

	for (; words[count]; count++)
		line[count] = words[count];
	if (command)
		line[count++] = "COMMAND";
	line[count] = NULL;
	optind = 0;
	int result = parse_options(options, count, line, error);

	options->command = command;
	return result;
}

/* The pipe is closed by the exec of COMMAND, or has the reason. */
int start_program(pid_t *pid, char *const words[], char *command[], int output, struct keeper *keeper, struct error *error)
{
	struct error why = {.reason = ""};
	struct options options;
	ssize_t got;
	int ends[2];

	if (start_parse(&options, words, command, error) < 0)
		return -1;
	if (pipe2(ends, O_CLOEXEC) < 0 || (*pid = fork()) < 0)
		return error_set_errno(error, "no process can be started");
	if (*pid == 0) {
		setsid();
		if (keeper)
			keeper_add(keeper, getpid());
		dup2(open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO);
		dup2(output, STDOUT_FILENO);
		action_run(&options, &why);
		_exit(write(ends[1], &why, sizeof why) == sizeof why ? EXIT_FAILURE : EXIT_NOT_FOUND);
	}
	close(ends[1]);
	do
		got = read(ends[0], &why, sizeof why);
	while (got < 0 && errno == EINTR);
	close(ends[0]);
	if (got == 0)
		return 0;
	waitpid(*pid, NULL, 0);
	*pid = 0;
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

char *start_mps(const struct options *options)
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
