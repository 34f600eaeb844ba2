#include "gpus.h"

#include "reason.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <string.h>

#define DRIVERS_GPUS "/proc/driver/nvidia/gpus"

/* The n-th of a list with commas. */
static int find_in_order(const struct nvtaskset_topology *topology, const char *order, unsigned int slurms, unsigned int *gpu,
                         struct nvtaskset_error *error)
{
	char name[64];

	for (unsigned int i = 0; i < slurms && order; i++)
		order = strchr(order, ',') ? strchr(order, ',') + 1 : NULL;
	if (!order)
		return reason_set(error, NVTASKSET_ERROR_NOT_KNOWN, "plugstack.conf: gpus= does not name Slurm's GPU %u", slurms);
	snprintf(name, sizeof name, "%.*s", (int)strcspn(order, ","), order);
	return nvtaskset_topology_find_gpu(topology, name, gpu, error);
}

/* The number N of /dev/nvidiaN; -1 if the driver does not say. */
static int device_number(const char *bus_id)
{
	char path[sizeof DRIVERS_GPUS + 64], line[256];
	int number = -1;

	snprintf(path, sizeof path, DRIVERS_GPUS "/%.32s/information", bus_id);
	for (char *letter = path; *letter; letter++)
		*letter = (char)tolower((unsigned char)*letter);
	FILE *file = fopen(path, "re");

	while (file && fgets(line, sizeof line, file))
		sscanf(line, "Device Minor: %d", &number);
	if (file)
		fclose(file);
	return number;
}

static int find_by_device(const struct nvtaskset_topology *topology, unsigned int slurms, unsigned int *gpu)
{
	struct nvtaskset_gpu description = {.size = sizeof description};

	for (unsigned int i = 0; i < nvtaskset_topology_gpu_count(topology); i++)
		if (nvtaskset_gpu_describe(topology, i, &description, NULL) == 0 && device_number(description.bus_id) == (int)slurms) {
			*gpu = i;
			return 0;
		}
	return -1;
}

int gpus_find(const struct nvtaskset_topology *topology, const char *order, unsigned int slurms, unsigned int *gpu,
              struct nvtaskset_error *error)
{
	if (*order)
		return find_in_order(topology, order, slurms, gpu, error);
	if (find_by_device(topology, slurms, gpu) == 0)
		return 0;
	*gpu = slurms;
	return slurms < nvtaskset_topology_gpu_count(topology)
	               ? 0
	               : reason_set(error, NVTASKSET_ERROR_NOT_KNOWN, "Slurm's GPU %u: this machine has %u", slurms,
	                            nvtaskset_topology_gpu_count(topology));
}
