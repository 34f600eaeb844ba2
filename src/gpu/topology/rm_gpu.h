/*
 * Reads one GPU from NVIDIA's kernel driver.
 */
#ifndef NVTASKSET_TOPOLOGY_RM_GPU_H
#define NVTASKSET_TOPOLOGY_RM_GPU_H

#include "rm_client.h"
#include "topology.h"

/* The driver's numbers for a GPU. */
struct rm_instance {
	uint32_t device, subdevice;
};

/* Reads all but the PCI address of an attached GPU; what is unknown stays unchanged. Uses a client of its own, which
 * frees all handles. -1 with the reason, or TOPOLOGY_REFUSED like topology_load_rm. */
int rm_gpu_read(const struct rm_system *system, const struct rm_instance *instance, struct topology *gpu,
                struct error *error);

#endif
