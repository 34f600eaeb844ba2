/*
 * The GPUs that this process launches on, as the launch path needs them: topology and descriptor family.
 */
#ifndef NVTASKSET_DRIVER_GPUS_H
#define NVTASKSET_DRIVER_GPUS_H

#include "cuda.h"
#include "qmd.h"
#include "segment.h"
#include "topology/topology.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum mask_state {
	MASK_NONE,        /* nothing compiled yet */
	MASK_WHOLE_GPU,   /* the partition leaves the GPU whole: descriptors stay as they are */
	MASK_RESTRICTED,  /* `disable` goes into every descriptor */
	MASK_LET_THROUGH, /* a partition that cannot be enforced, for `reason` */
	MASK_BY_LAUNCH,   /* the program has masks of its own (app_masks.h), on top of the partition's, which `disable` is */
};

/* A partition, compiled for one GPU. */
struct mask {
	uint64_t number; /* of the segment's revision that it was compiled from; 0 where it is to be compiled again */
	uint32_t state;  /* enum mask_state */
	uint32_t reason; /* enum segment_reason, with MASK_LET_THROUGH */
	struct qmd_mask disable;
};

#define GPU_MASK_WORDS (sizeof(struct mask) / sizeof(uint64_t))
#define GPU_MASKS 4

struct gpu {
	const struct topology *topology;  /* NULL where unknown */
	const struct qmd_family *family;  /* NULL where unknown */
	struct pci_address pci;
	_Atomic bool compiling;           /* somebody is filling the next place of the ring */
	_Atomic uint64_t current;         /* the mask in force stands at masks[current % GPU_MASKS] */
	_Atomic uint64_t masks[GPU_MASKS][GPU_MASK_WORDS];
};

/* What the command knows of the GPUs (topology/handover.h): goes before what the environment says, for the calling thread.
 * Not copied; NULL takes it back. */
void gpus_hand(const char *text);

/* Learns the topology of the GPUs that the driver shows this program, once a process, and says what is wrong on standard
 * error. */
void gpus_prepare(void);

/* Whether there is a GPU among them whose descriptors do not say that blocks must run at once. */
bool gpus_some_before_hopper(void);

/* The GPU of a context; NULL where the driver does not say. Remembered (contexts.h): it is asked once. */
struct gpu *gpus_of_context(CUcontext context);

/* The GPU of a device; NULL where the driver does not say. */
struct gpu *gpus_of_device(CUdevice device);

/* The TPCs of a GPU whose topology is known that a launch may use now: all where nothing is restricted, or what is asked
 * for cannot be. */
struct tpcset gpus_partition(const struct gpu *gpu, const struct segment *segment);

/* Calls `visit` for all GPUs that a launch may be on. */
void gpus_for_each(void (*visit)(struct gpu *gpu));

/* In the child of a fork: what other threads were doing, they do no more. */
void gpus_after_fork(void);

#endif
