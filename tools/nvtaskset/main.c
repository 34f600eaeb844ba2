/*
 * nvtaskset: taskset for GPUs. Parses the command line and runs one action. Error messages are printed here and nowhere
 * else.
 */
#include "cdi/hook.h"
#include "cli/actions.h"
#include "cli/parse.h"
#include "start/probe.h"
#include "tuning/programs.h"
#include "version.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The first file that we open would take the number of a standard one that is closed, and get our output. What we put
 * there fails as a closed one does, and is closed for COMMAND. */
static void occupy_closed_files(void)
{
	for (int file = STDIN_FILENO; file <= STDERR_FILENO; file++) {
		if (fcntl(file, F_GETFD) < 0)
			open("/dev/null", (file == STDIN_FILENO ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
	}
}

/* Output that could not be written is a failure: the disk is full, or the pipe is closed. */
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

/* The output could not be written. A partition that has been changed stays changed, and the exit status must say so. */
static int explain_lost_output(const struct options *options, struct error *error)
{
	struct error why = *error;

	bool changes = options->action == ACTION_CHANGE || segment_time_is_given(&options->time);

	if (!changes || options->action == ACTION_RUN || options->dry_run)
		return EXIT_FAILURE;
	error_set(error, "%.200s; the partition has been changed", why.reason);
	return EXIT_CHANGED;
}

int main(int count, char **arguments)
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
