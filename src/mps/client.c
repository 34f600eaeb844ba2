#include "client.h"

#include "control.h"
#include "daemon.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int check_room(const struct mps_status *status, struct error *error)
{
	if (status->clients < status->capacity || status->has_namespaces)
		return 0;
	return error_set(error, "MPS: the server (pid %d) is full: %u clients, and %u fit at %u connections each; "
	                        "end one%s",
	                 (int)status->server, status->clients, status->capacity, status->connections,
	                 status->connections > 2 ? ", or use --connections 2" : "");
}

static int set_variable(const char *name, const char *value, struct error *error)
{
	return setenv(name, value, 1) < 0 ? error_set(error, "MPS: no memory") : 0;
}

/* For a program: names --mps off, which a question about MPS does not offer. */
static int offer_off(struct error *error)
{
	if (error)
		error_reword(error, "%s; --mps off runs without MPS", error->reason);
	return -1;
}

static int join_server(const char *control, const struct mps_request *request, struct mps_status *status,
                       struct error *error)
{
	char number[16];

	if (!status->running && request->mode == MPS_ON)
		return error_set(error, "MPS: no control daemon runs in %.100s; start it with '" MPS_CONTROL
		                        " -d', or use --mps auto",
		                 status->pipe_directory);
	if (!status->running && mps_start(control, request, status, error) < 0)
		return offer_off(error);
	snprintf(number, sizeof number, "%u", status->connections);
	if (check_room(status, error) < 0 || set_variable(MPS_CONNECTIONS_ENVIRONMENT, number, error) < 0)
		return -1;
	if (request->priority == MPS_PRIORITY_AS_IT_IS)
		return 0;
	return set_variable(MPS_PRIORITY_ENVIRONMENT, request->priority == MPS_PRIORITY_BELOW ? "1" : "0", error);
}

int mps_prepare(const struct mps_request *request, struct mps_status *status, struct error *error)
{
	char control[PATH_MAX];

	if (mps_look(request, status, control, error) < 0)
		return offer_off(error);
	if (request->mode != MPS_OFF)
		return join_server(control, request, status, error);
	/* A program uses no MPS if the directory for pipes is no directory (Bakita and Anderson 2025, footnote 20). */
	return set_variable(MPS_DIRECTORY_ENVIRONMENT, "/dev/null", error);
}

/* --- limits of SMs ------------------------------------------------------------------------------------------------ */

const char *mps_limit_given(void)
{
	static const char *const variables[] = {
		MPS_PERCENTAGE_ENVIRONMENT, MPS_PER_CONTEXT_ENVIRONMENT, MPS_PARTITION_ENVIRONMENT,
	};
	const char *found = NULL;

	for (size_t i = 0; i < sizeof variables / sizeof variables[0] && !found; i++) {
		const char *value = getenv(variables[i]);

		found = value && *value ? variables[i] : NULL;
	}
	return found;
}
