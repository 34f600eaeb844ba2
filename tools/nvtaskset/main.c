/*
 * nvtaskset: taskset for GPUs. Parses the command line and runs an action. Only this file prints error messages.
 */
#include "cdi/inside.h"
#include "cli/actions.h"
#include "cli/parse.h"
#include "start/probe.h"
#include "tuning/programs.h"
#include "version.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <ucontext.h>
#include <unistd.h>

/* With a standard file closed, our first open file would take its number, and get our output. A file in its place fails
 * like a closed file, and is closed for COMMAND. */
static void occupy_closed_files(void)
{
	for (int file = STDIN_FILENO; file <= STDERR_FILENO; file++) {
		if (fcntl(file, F_GETFD) < 0)
			open("/dev/null", (file == STDIN_FILENO ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
	}
}

/* Lost output is a failure: the disk is full, or the pipe is closed. */
static int close_output(struct error *error)
{
	return fflush(stdout) == 0 && !ferror(stdout) ? 0 : error_set_errno(error, "standard output");
}

int action_version(const struct options *options, struct error *error)
{
	(void)options;
	(void)error;
	puts("nvtaskset " NVTASKSET_VERSION);
	return 0;
}

static int (*const actions[])(const struct options *options, struct error *error) = {
#define ACTION_ROW(identifier, function, name) function,
	ACTIONS(ACTION_ROW)
#undef ACTION_ROW
};

#define CHANGING (1u << ACTION_CHANGE | 1u << ACTION_MPS_STOP | 1u << ACTION_SYSTEM_ENABLE | \
                  1u << ACTION_SYSTEM_DISABLE | 1u << ACTION_CDI_ADD | 1u << ACTION_CDI_REMOVE)

/* Whether a successful action has changed anything. */
static bool has_changed(const struct options *options)
{
	bool gives = options->action == ACTION_SHOW &&
	             (options->attach || revision_gives_any(&options->settings, SETTING_COUNT));
	bool applies = options->action == ACTION_PLAN && options->apply;

	return !options->dry_run && (CHANGING >> options->action & 1 || gives || applies);
}

/* The output was lost. Changes stay, and the exit status must say so. */
static int explain_lost_output(const struct options *options, struct error *error)
{
	struct error why = *error;

	if (!has_changed(options))
		return EXIT_FAILURE;
	error_set(error, "%.200s; the change has been made", why.reason);
	return EXIT_CHANGED;
}

static int command_main(int count, char **arguments)
{
	struct options options;
	struct error error = {.reason = ""};
	int status = -1;

	occupy_closed_files();
	if (probe_is_me(arguments[0]))
		return probe_main();
	if (hook_is_me(arguments[0]))
		return hook_main(count, arguments);
	if (count > 1 && strcmp(arguments[1], "--complete") == 0)
		return action_complete(count - 1, arguments + 1);
	if (count == 4 && strcmp(arguments[1], NEIGHBOUR_ARGUMENT) == 0)
		return neighbour_main(arguments[2], arguments[3]);
	if (parse_options(&options, count, arguments, &error) == 0)
		status = actions[options.action](&options, &error);
	if (status < 0)
		status = EXIT_FAILURE;
	if (status == EXIT_SUCCESS && close_output(&error) < 0)
		status = explain_lost_output(&options, &error);
	if (status != EXIT_SUCCESS)
		fprintf(stderr, "nvtaskset: %s\n", error.reason);
	return status;
}

/* --- a stack of our own, if the limit for stacks (ulimit -s) is small ------------------------------------------------
 * The limit itself stays: COMMAND inherits the limit. */

#define STACK_BYTES ((size_t)256 << 10)

static struct {
	ucontext_t before, inside;
	int count, status;
	char **arguments;
} small;

static void run_inside(void)
{
	small.status = command_main(small.count, small.arguments);
}

int main(int count, char **arguments)
{
	struct rlimit limit = {.rlim_cur = RLIM_INFINITY};
	void *stack = MAP_FAILED;

	getrlimit(RLIMIT_STACK, &limit);
	if (limit.rlim_cur < STACK_BYTES)
		stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	if (stack == MAP_FAILED || getcontext(&small.inside) < 0)
		return command_main(count, arguments);
	small.count = count;
	small.arguments = arguments;
	small.inside.uc_stack = (stack_t){.ss_sp = stack, .ss_size = STACK_BYTES};
	small.inside.uc_link = &small.before;
	makecontext(&small.inside, run_inside, 0);
	swapcontext(&small.before, &small.inside);
	return small.status;
}
