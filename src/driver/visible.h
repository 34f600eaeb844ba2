/* The GPUs that the driver shows this program: what CUDA_VISIBLE_DEVICES, a container and MIG leave of the machine's. */
#ifndef NVTASKSET_DRIVER_VISIBLE_H
#define NVTASKSET_DRIVER_VISIBLE_H

#include "cuda.h"
#include "gpu/topology/topology.h"

#include <stdbool.h>

struct visible {
	struct topology_wanted gpus;
	char uuids[TOPOLOGY_GPUS_MAX][TOPOLOGY_UUID_MAX]; /* of each; of the instance, where MIG is on; "" where unknown */
};

/* None where the driver does not say. It is asked: not for where a lock of ours is held. */
void visible_find(struct visible *visible);

bool visible_find_pci(CUdevice device, struct pci_address *pci);

#endif
