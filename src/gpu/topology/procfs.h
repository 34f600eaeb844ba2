/*
 * The GPUs that NVIDIA's kernel module lists under /proc/driver/nvidia/gpus, with their identity only. Needs neither
 * root nor the module's ioctls. The files are described in the driver's README, "proc Interface".
 *
 * This may run in other people's processes: nothing is left open, and every loop is bounded.
 */
#ifndef NVTASKSET_TOPOLOGY_PROCFS_H
#define NVTASKSET_TOPOLOGY_PROCFS_H

#include "topology.h"

struct procfs_gpu {
	struct pci_address pci;
	char uuid[TOPOLOGY_UUID_MAX]; /* "" if the module does not know it yet */
	char name[TOPOLOGY_NAME_MAX];
};

/* Fills `gpus` with the GPUs that this process may use (their device file can be opened), at most TOPOLOGY_GPUS_MAX, in
 * no order. Returns their number; 0 if there is no module, as on Jetson. `root` is put before every path; "" except in
 * tests. */
unsigned int procfs_read(const char *root, struct procfs_gpu *gpus);

#endif
