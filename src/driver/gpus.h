/*
 * The GPUs that this process launches on: topology and descriptor family, for the launch path.
 */
#ifndef NVTASKSET_DRIVER_GPUS_H
#define NVTASKSET_DRIVER_GPUS_H

#include "cuda.h"
#include "gpu/qmd.h"
#include "gpu/topology/topology.h"

#include <stdbool.h>

/* One for each GPU that the program sees, and one for all GPUs of unknown topology. */
#define GPUS_MAX (TOPOLOGY_GPUS_MAX + 1)

struct gpu {
	const struct topology *topology; /* NULL if unknown */
	const struct qmd_family *family; /* NULL if unknown */
	struct pci_address pci;
	unsigned int number; /* 0 … GPUS_MAX - 1 */
	struct qmd_mask present; /* the mask bits of its TPCs; only with has_masks */
	bool has_masks;      /* its topology is known, its family too, and each version of that has a mask bit for each TPC */
};

/* `report_unknown` is called if the topology of the GPUs cannot be found. `description` is the command's description of the GPUs
 * (topology_environment_write), to be used instead of the environment; NULL: there is none. Call this before anything else here. */
void gpus_open(const char *description, void (*report_unknown)(const char *reason));

/* Finds the topology of the GPUs that the driver shows this program, once in a process. CUDA_VISIBLE_DEVICES, a container and MIG
 * may hide some of the machine's. Calls the driver. */
void gpus_prepare(void);

/* Whether the program sees a GPU whose descriptors do not say that blocks must run at once. */
bool gpus_some_before_hopper(void);

/* The GPU of a device: if the driver does not say which, that of unknown topology. */
#define GPUS_NO_DEVICE (-1)
struct gpu *gpus_of_device(CUdevice device);

/* The GPU at this address, whose topology is known; NULL if none is known there, or not yet. Does not ask the driver. */
const struct gpu *gpus_at(struct pci_address pci);

#endif
