/*
 * The GPUs that NVIDIA's kernel module lists under /proc/driver/nvidia/gpus: who they are, and no more. Without root,
 * and where its ioctls are out of reach. The files are described in the driver's README, "proc Interface".
 *
 * It may run in other people's processes: nothing is left open, and every loop is bounded.
 */
#ifndef NVTASKSET_TOPOLOGY_INSTALLED_H
#define NVTASKSET_TOPOLOGY_INSTALLED_H

#include "topology.h"

#include <stdint.h>

struct installed_gpu {
	struct pci_address pci;
	char uuid[TOPOLOGY_UUID_MAX]; /* "" where the module does not know it yet */
	char name[TOPOLOGY_NAME_MAX];
	uint16_t device_id; /* PCI's; 0 where unknown */
};

/* Fills `gpus` with those that this process may use (their device file opens), at most TOPOLOGY_GPUS_MAX, in no
 * order, and says how many. 0 where the module is not there, as on Jetson. `root` is "" but in tests: it goes before
 * every path. */
unsigned int installed_read(const char *root, struct installed_gpu *gpus);

#endif
