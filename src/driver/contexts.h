/*
 * The GPU of each context, and the counts of its kernels: a table, which any thread reads and writes without waiting.
 *
 * A full table remembers no new contexts: the driver is asked again each time, three to five calls. The launch path
 * looks here when a thread launches on a new context.
 */
#pragma once

#include "cuda.h"

#include <stdbool.h>

struct gpu;
struct releases;

struct context_facts {
	struct gpu *gpu;           /* never NULL */
	struct releases *releases; /* releases.h; NULL if we have not heard of the context's creation */
};

/* Asks the driver for a context that is not in the table. contexts_gpu: only the GPU. */
struct context_facts contexts_find(CUcontext context);
struct gpu *contexts_gpu(CUcontext context);

/* Makes `context` the thread's current context for a moment, unless the context is current already. */
CUresult contexts_enter(CUcontext context, bool *is_pushed);
void contexts_leave(bool is_pushed);

CUresult contexts_device(CUcontext context, CUdevice *device);

/* Visits the active primary contexts, holding each, until `visit` returns false. The driver lists no other contexts. */
void contexts_visit_primaries(bool (*visit)(CUcontext context));

/* Without asking the driver. NULL or false: the table does not have the context. */
struct releases *contexts_releases(CUcontext context);
bool contexts_set_releases(CUcontext context, struct releases *releases);

/* Visits the contexts of the table. `visit` may forget the context. */
void contexts_visit(void (*visit)(CUcontext context));

void contexts_forget(CUcontext context);

/* In the child of a fork: the parent's releases do not count the child's kernels. */
void contexts_after_fork(void);
