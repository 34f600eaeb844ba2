/*
 * The GPUs for the launches of this process: topology and descriptor family, for the launch path.
 */
#pragma once

#include "cuda.h"
#include "gpu/qmd.h"
#include "gpu/topology/topology.h"

/* A place for each GPU of the program, and a place for all GPUs of unknown topology. */
#define GPUS_MAX (TOPOLOGY_GPUS_MAX + 1)

struct gpu {
	const struct topology *topology; /* NULL if unknown */
	const struct qmd_family *family; /* NULL if unknown */
	struct pci_address pci;
	unsigned int number; /* 0 … GPUS_MAX - 1 */
	struct qmd_mask present; /* the mask bits of the GPU's TPCs; only with has_masks */
	bool has_masks;      /* topology and family are known, with a mask bit for each TPC in each version */
};

/* `report_unknown` is called if the topology of the GPUs cannot be found. `description` is the command's description of
 * the GPUs (topology_environment_write), in place of the environment; NULL: none. Call this function first. */
void gpus_open(const char *description, void (*report_unknown)(const char *reason));

/* Finds the topology of the GPUs that the driver shows this program, once in a process. CUDA_VISIBLE_DEVICES, a
 * container and MIG may hide some GPUs of the machine. Calls the driver. */
void gpus_prepare(void);

/* Whether the program sees a GPU with descriptors that do not say whether blocks must run at once. */
bool gpus_some_before_hopper(void);

/* The GPU of a device. If the driver does not say: the GPU of unknown topology. */
#define GPUS_NO_DEVICE (-1)
struct gpu *gpus_of_device(CUdevice device);

/* The GPU of known topology at the address; NULL: not known there, or not yet. Does not ask the driver. */
const struct gpu *gpus_at(struct pci_address pci);
