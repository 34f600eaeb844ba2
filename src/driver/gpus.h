/*
 * The GPUs that this process launches on, as the launch path needs them: topology and descriptor family.
 */
#ifndef NVTASKSET_DRIVER_GPUS_H
#define NVTASKSET_DRIVER_GPUS_H

#include "cuda.h"
#include "gpu/qmd.h"
#include "gpu/topology/topology.h"

#include <stdbool.h>

/* One for each GPU that the program sees, and one for all that have no topology. */
#define GPUS_MAX (TOPOLOGY_GPUS_MAX + 1)

struct gpu {
	const struct topology *topology; /* NULL where unknown */
	const struct qmd_family *family; /* NULL where unknown */
	struct pci_address pci;
};

/* What the command knows of the GPUs (topology/handover.h): goes before what the environment says, for the calling thread.
 * Not copied; NULL takes it back. */
void gpus_hand(const char *text);

/* Whom to tell why the topology of the GPUs cannot be learnt, should that be so. Before anything else here. */
void gpus_open(void (*tell_unknown)(const char *reason));

/* Learns the topology of the GPUs that the driver shows this program, once a process. */
void gpus_prepare(void);

/* 0 … GPUS_MAX - 1. */
unsigned int gpus_number(const struct gpu *gpu);

/* Whether masks can be written into the descriptors of a GPU whose topology is known: it is of a family that we know, and each
 * of its TPCs has a bit in every version of them. */
bool gpus_have_masks(const struct gpu *gpu);

/* Whether there is a GPU among them whose descriptors do not say that blocks must run at once. */
bool gpus_some_before_hopper(void);

/* The GPU of a context; NULL where the driver does not say. Remembered (contexts.h): it is asked once. */
struct gpu *gpus_of_context(CUcontext context);

/* The GPU of a device; NULL where the driver does not say. */
struct gpu *gpus_of_device(CUdevice device);

#endif
