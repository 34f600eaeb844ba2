/*
 * Which GPU a context belongs to, and how its kernels are counted: a table that any thread reads and writes without waiting.
 *
 * When the table is full, new contexts are not remembered, and the driver is asked again each time: three to five
 * calls. The launch path looks here when a thread launches on another context than before.
 */
#ifndef NVTASKSET_DRIVER_CONTEXTS_H
#define NVTASKSET_DRIVER_CONTEXTS_H

#include "cuda.h"

#include <stdbool.h>

struct gpu;
struct releases;

/* What is known of a context. */
struct context_facts {
	struct gpu *gpu;           /* never NULL */
	struct releases *releases; /* releases.h; NULL if we have not heard of its creation */
};

/* The driver is asked once for each context. */
struct context_facts contexts_find(CUcontext context);
struct gpu *contexts_gpu(CUcontext context);

/* Makes it this thread's current context for a moment, unless it is that already. */
CUresult contexts_enter(CUcontext context, bool *is_pushed);
void contexts_leave(bool is_pushed);

/* The device of a context. */
CUresult contexts_device(CUcontext context, CUdevice *device);

/* Visits the primary contexts that are active, and holds each meanwhile, until `visit` returns false. The driver does not list other
 * contexts. */
void contexts_visit_primaries(bool (*visit)(CUcontext context));

/* Without asking the driver; NULL if the table does not have it. The second returns false then. */
struct releases *contexts_releases(CUcontext context);
bool contexts_set_releases(CUcontext context, struct releases *releases);

void contexts_forget(CUcontext context);

/* In the child of a fork: what counts its parent's kernels does not count its own. */
void contexts_after_fork(void);

#endif
