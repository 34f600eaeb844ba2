/*
 * One GPU, as NVIDIA's kernel driver describes it.
 */
#ifndef NVTASKSET_TOPOLOGY_RM_GPU_H
#define NVTASKSET_TOPOLOGY_RM_GPU_H

#include "rm_client.h"
#include "topology.h"

/* The driver's numbers for it. */
struct rm_instance {
	uint32_t device, subdevice;
};

/* All but the PCI address, of a GPU that is attached; what was not found out stays as it was. Through a client of its own, so
 * that all handles go with it. -1 with the reason; TOPOLOGY_REFUSED as topology_load_rm. */
int rm_gpu_read(const struct rm_system *system, const struct rm_instance *instance, struct topology *gpu,
                struct error *error);

#endif
