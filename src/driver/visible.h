/* The GPUs that the driver shows this program. CUDA_VISIBLE_DEVICES, a container and MIG may hide some of the
 * machine's. */
#ifndef NVTASKSET_DRIVER_VISIBLE_H
#define NVTASKSET_DRIVER_VISIBLE_H

#include "cuda.h"
#include "gpu/topology/topology.h"

#include <stdbool.h>

struct visible {
	struct topology_wanted gpus;
	char uuids[TOPOLOGY_GPUS_MAX][TOPOLOGY_UUID_MAX]; /* the MIG instance's, if MIG is on; "" if unknown */
};

/* None if the driver does not say. Calls the driver, so the caller must hold no lock that a callback takes. */
void visible_find(struct visible *visible);

bool visible_find_pci(CUdevice device, struct pci_address *pci);

#endif
