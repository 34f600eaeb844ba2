/*
 * The GPUs that NVIDIA's kernel module lists under /proc/driver/nvidia/gpus, with their identity only. Needs neither
 * root nor the module's ioctls. The driver's README, "proc Interface", describes the files.
 *
 * May run in foreign programs: nothing is left open, and every loop is bounded.
 */
#ifndef NVTASKSET_TOPOLOGY_PROCFS_H
#define NVTASKSET_TOPOLOGY_PROCFS_H

#include "topology.h"

struct procfs_gpu {
	struct pci_address pci;
	char uuid[TOPOLOGY_UUID_MAX]; /* "" if not yet known to the module */
	char name[TOPOLOGY_NAME_MAX];
};

/* Fills `gpus` with the GPUs that this process may use (the device file can be opened), at most TOPOLOGY_GPUS_MAX, in
 * no order. Returns the number of GPUs; 0 without the module, as on Jetson. `root` is put before every path; "" except
 * in tests. */
unsigned int procfs_read(const char *root, struct procfs_gpu *gpus);

#endif
