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
	struct gpu *gpu;           /* NULL if unknown */
	struct releases *releases; /* releases.h; NULL if we have not heard of its creation */
};

/* All NULL if the table does not have it. */
struct context_facts contexts_find(CUcontext context);

void contexts_remember(CUcontext context, struct gpu *gpu);
void contexts_forget(CUcontext context);

/* False if the table does not have it. */
bool contexts_set_releases(CUcontext context, struct releases *releases);

/* In the child of a fork: what counts its parent's kernels does not count its own. */
void contexts_after_fork(void);

#endif
