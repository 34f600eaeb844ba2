/* Contexts, primary and explicit, and the stack of current ones that each thread has. */
#ifndef SIM_CONTEXT_H
#define SIM_CONTEXT_H

#include "api.h"
#include "gpu/topology/topology.h"

struct CUctx_st {
	CUdevice device;
	const struct topology *gpu;
	CUcontext family;          /* whose modules it runs: its own, or a green context's primary one's */
	struct tpcset tpcs;        /* where its kernels may run */
	bool is_green;             /* `tpcs` may be less than the GPU, and goes into each descriptor */
	bool hides_green_contexts; /* decided when it was made (facts.md, "The callback table") */
	char object[8];            /* what word [2] of launch events points to (facts.md, "Callbacks") */
	_Atomic uint64_t launches; /* word [5] */
	struct engine *engine;     /* of the family: engine.h */
	struct pushbuffer *pushbuffer; /* of the family: pushbuffer.h */
};

/* Fills a context that covers the whole device. */
void context_prepare(CUcontext context, CUdevice device);

/* The thread's current context, or NULL. */
CUcontext context_current(void);

/* A kernel's fault ends all contexts of the process, on all GPUs, with an error that stays (facts.md, "Releases"). */
void context_fail(CUresult error);

/* The error, or CUDA_SUCCESS; context_result: CUDA_ERROR_INVALID_CONTEXT without a context. */
CUresult context_failure(void);
CUresult context_result(CUcontext context);

/* The simulated GPUs are those of a topology file. */

/* CUDA_SUCCESS once this process has called cuInit; a child of fork has not, even if its parent has. */
CUresult device_ready(void);

/* NULL if there is no such device. */
const struct topology *device_topology(CUdevice device);

#endif
