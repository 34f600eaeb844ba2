#include "census.h"

#include "base/proc.h"
#include "gpu/uuid.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define DEVICES_MAX 64 /* more than a machine has */

/* The clients of one server, by GPU: each GPU has its own channels. */
struct census {
	unsigned int devices;
	struct {
		char uuid[UUID_TEXT];
		unsigned int clients;
	} on[DEVICES_MAX];
};

static bool is_mine(long server)
{
	uid_t owner;

	/* A server that cannot be inspected (another PID namespace) is taken for ours: it is then the only one. */
	return !proc_owner((pid_t)server, &owner) || owner == getuid();
}

/* The daemon shortens UUIDs, so only a prefix is compared. */
static bool will_use(const struct mps_request *request, const char *uuid)
{
	bool use = request->gpu_count == 0;

	for (unsigned int i = 0; i < request->gpu_count; i++)
		use = use || strncasecmp(request->gpus[i], uuid, strlen(uuid)) == 0;
	return use;
}

/* Counts one more client on a GPU. Returns how many it has then. */
static unsigned int count_client(struct census *census, const char *uuid)
{
	unsigned int device = 0;

	while (device < census->devices && strcmp(census->on[device].uuid, uuid) != 0)
		device++;
	if (device == DEVICES_MAX)
		return 0;
	if (device == census->devices)
		strcpy(census->on[census->devices++].uuid, uuid);
	return ++census->on[device].clients;
}

/* One line of "get_server_list" (a number) or of "ps" (a table: PID, ID, SERVER, DEVICE, …). */
static void read_line(struct mps_status *status, struct census *census, const struct mps_request *request,
                      const char *line)
{
	long first, server;
	char id[32], uuid[UUID_TEXT];
	int words = sscanf(line, "%7ld %31s %7ld %40s", &first, id, &server, uuid);

	status->all_clients += words == 4;
	if (words == 1 && is_mine(first)) {
		status->server = (pid_t)first;
	} else if (words == 4 && status->server && server == status->server && will_use(request, uuid)) {
		unsigned int clients = count_client(census, uuid);

		status->clients = clients > status->clients ? clients : status->clients;
	}
}

void census_read(struct mps_status *status, const struct mps_request *request, char *answer)
{
	struct census census = {.devices = 0};
	char *rest = NULL;

	for (char *line = strtok_r(answer, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		read_line(status, &census, request, line);
}
