/* For unit tests, which run in the root of the repository: the GPUs of share/topologies. */
#ifndef NVTASKSET_TESTS_SHARE_H
#define NVTASKSET_TESTS_SHARE_H

#include "../cases.h"
#include "gpu/topology/topology.h"

/* The first GPU of a file, which is read into `list`. */
static const struct topology *share_read(struct topology_list *list, const char *name)
{
	struct error error = {.reason = ""};
	char path[128];

	snprintf(path, sizeof path, "share/topologies/%s.txt", name);
	FILE *file = fopen(path, "r");

	if (!file || topology_read(list, file, path, &error) < 0)
		fail_msg("%s: %s", path, error.reason);
	fclose(file);
	return &list->gpus[0];
}

#endif
