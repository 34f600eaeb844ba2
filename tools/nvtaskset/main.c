/*
 * nvtaskset: taskset for GPUs. Parses the command line and hands over to one action; the one place that
 * prints reasons and decides the exit status.
 */
#include "actions.h"
#include "options.h"
#include "probe.h"
#include "version.h"

#include <stdio.h>
#include <stdlib.h>

/* Output that nobody could read is a failure: a full disk, a closed pipe. */
static int close_output(struct error *error)
{
	return fflush(stdout) == 0 && !ferror(stdout) ? 0 : error_set_errno(error, "standard output");
}

static int act(const struct options *options, struct error *error)
{
	int status = EXIT_SUCCESS;

	switch (options->action) {
	case ACTION_RUN:
		status = action_run(options, error);
		break;
	case ACTION_SHOW:
	case ACTION_CHANGE:
		status = action_partition(options, error) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
		break;
	case ACTION_LIST:
		status = action_list(options, error) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
		break;
	case ACTION_TOPOLOGY:
		status = action_topology(options, error) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
		break;
	case ACTION_MEASURE:
		status = action_measure(options, error) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
		break;
	case ACTION_MPS_STATUS:
		status = action_mps_status(options, error) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
		break;
	case ACTION_MPS_STOP:
		status = action_mps_stop(options, error) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
		break;
	case ACTION_ENABLE_SYSTEM:
		status = action_enable_system(options, error) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
		break;
	case ACTION_DISABLE_SYSTEM:
		status = action_disable_system(options, error) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
		break;
	case ACTION_HELP:
		action_help();
		break;
	case ACTION_VERSION:
		puts("nvtaskset " NVTASKSET_VERSION);
		break;
	}
	return status;
}

int main(int count, char **arguments)
{
	struct options options;
	struct error error = {.reason = ""};
	int status = EXIT_FAILURE;

	if (probe_is_me(arguments[0]))
		return probe_main();
	if (options_parse(&options, count, arguments, &error) == 0)
		status = act(&options, &error);
	if (status == EXIT_SUCCESS && close_output(&error) < 0)
		status = EXIT_FAILURE;
	if (status != EXIT_SUCCESS)
		fprintf(stderr, "nvtaskset: %s\n", error.reason);
	return status;
}
