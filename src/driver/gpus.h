/*
 * The GPUs that this process launches on: topology and descriptor family, for the launch path.
 */
#ifndef NVTASKSET_DRIVER_GPUS_H
#define NVTASKSET_DRIVER_GPUS_H

#include "contexts.h"
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
};

/* Gives the calling thread the command's description of the GPUs (topology_environment_write), to be used instead of
 * the environment. Not copied; NULL takes it back. */
void gpus_use_description(const char *text);

/* `report_unknown` is called if the topology of the GPUs cannot be found. Call this before anything else here. */
void gpus_open(void (*report_unknown)(const char *reason));

/* Finds the topology of the GPUs that the driver shows this program, once in a process. */
void gpus_prepare(void);

/* 0 … GPUS_MAX - 1. */
unsigned int gpus_number(const struct gpu *gpu);

/* Whether masks can be written into the GPU's descriptors: we know their family, and each version of it has a mask bit
 * for each TPC of the GPU. The GPU's topology must be known. */
bool gpus_have_masks(const struct gpu *gpu);

/* Whether the program sees a GPU whose descriptors do not say that blocks must run at once. */
bool gpus_some_before_hopper(void);

/* What is known of a context, and its GPU; that is NULL if the driver does not say. The driver is asked once for each
 * context (contexts.h). */
struct context_facts gpus_facts_of_context(CUcontext context);
struct gpu *gpus_of_context(CUcontext context);

/* The device of a context, which need not be current. */
CUresult gpus_device_of(CUcontext context, CUdevice *device);

/* The GPU of a device; NULL if the driver does not say. */
struct gpu *gpus_of_device(CUdevice device);

/* The GPU at this address, whose topology is known; NULL if none is known there, or not yet. Does not ask the driver. */
const struct gpu *gpus_at(struct pci_address pci);

#endif
