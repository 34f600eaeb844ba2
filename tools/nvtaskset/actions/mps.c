#include "cli/actions.h"

#include "mps/daemon.h"

#include <pwd.h>
#include <stdio.h>

static const char *name_of(uid_t user, char text[32])
{
	const struct passwd *entry = getpwuid(user);

	if (entry)
		snprintf(text, 32, "%.31s", entry->pw_name);
	else
		snprintf(text, 32, "%u", (unsigned int)user);
	return text;
}

static void show_daemon(const struct mps_status *status)
{
	static const char *const starters[] = {
		[MPS_STARTER_UNKNOWN] = "",
		[MPS_STARTED_BY_US] = ", started by nvtaskset",
		[MPS_STARTED_BY_OTHERS] = ", not started by nvtaskset",
	};
	char name[32];

	printf("control daemon: in %s", status->pipe_directory);
	if (status->daemon > 0)
		printf(", pid %d of user %s", (int)status->daemon, name_of(status->owner, name));
	printf("%s\n", starters[status->starter]);
}

static void show_server(const struct mps_status *status)
{
	unsigned int room = status->clients < status->capacity ? status->capacity - status->clients : 0;

	if (status->server > 0)
		printf("server: pid %d\n", (int)status->server);
	else
		printf("server: none yet; it comes with the first client\n");
	if (status->has_namespaces)
		printf("clients: %u; by interface 3: how many more fit, and which limits they get, is not known\n",
		       status->clients);
	else
		printf("clients: %u; %u more fit at %u connections each\n", status->clients, room, status->connections);
	if (status->all_clients > status->clients)
		printf("clients of all users on all GPUs: %u\n", status->all_clients);
}

int action_mps_status(const struct options *options, struct error *error)
{
	struct mps_status status;
	int result = mps_inspect(&options->mps, &status, error);

	if (result == 0) {
		show_daemon(&status);
		show_server(&status);
	}
	return result;
}

int action_mps_stop(const struct options *options, struct error *error)
{
	struct mps_status status;
	int result = mps_stop(options->force, &status, error);

	if (result == 0)
		printf("stopped the control daemon in %s\n", status.pipe_directory);
	return result;
}
