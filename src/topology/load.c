#include "topology/topology.h"

#include <stdlib.h>

static int load_file(struct topology_list *list, const char *path, struct error *error)
{
	FILE *file = fopen(path, "re");

	if (!file)
		return error_set_errno(error, "NVTASKSET_TOPOLOGY=%.200s", path);
	int result = topology_read(list, file, path, error);

	fclose(file);
	return result;
}

int topology_load(struct topology_list *list, struct error *error)
{
	const char *path = getenv("NVTASKSET_TOPOLOGY");

	return path && *path ? load_file(list, path, error) : topology_load_rm(list, error);
}
