/*
 * Lets the GPU count the kernels of each context when they have ended, and write when that was, while somebody looks
 * (state/kernels/counts.h, state/kernels/timestamps.h, facts.md, "Releases").
 *
 * A context registers its place and its ring when it is created: before it can launch, and not in a launch, since the driver then
 * holds locks. We never unregister: until the context is destroyed, any descriptor may write there, those of graphs too.
 * What the launch path writes into descriptors is prepared here, once for each context.
 */
#ifndef NVTASKSET_DRIVER_RELEASES_H
#define NVTASKSET_DRIVER_RELEASES_H

#include "cuda.h"
#include "gpu/qmd.h"
#include "state/kernels/counts_read.h"
#include "state/kernels/timestamps.h"

#include <stdbool.h>

/* Of a context. Found with its GPU (contexts.h). */
struct releases {
	bool are_unknown;                          /* we have not heard of its creation */
	struct counts_place *place;                /* NULL: nothing is counted, and the reason is noted */
	bool are_ready;                            /* false: launches are counted, ends are not, and the reason is noted */
	struct qmd_release of_kind[COUNTS_KINDS];  /* for descriptors of the GPU's family */
	struct timestamps *timestamps;                     /* NULL: ends get no time, and the reason is noted */
	uint64_t timestamps_at;                        /* its cells, for the GPU */
	struct qmd_release stamping;               /* into the first of them */
};

/* Those of a context that is older than we are. */
extern const struct releases releases_unknown __attribute__((visibility("hidden")));

/* From here on, counts go to areas of this segment. Only while no thread uses the driver: at the start, and in the child
 * of a fork after releases_after_fork. Before it, nothing is counted. */
void releases_use(const struct segment *segment);

/* In the child of a fork: it has no context yet, and its parent's areas are not its own. */
void releases_after_fork(void);

/* The primary contexts of the GPUs, and the one that this thread uses, may be older than we are: their kernels are counted
 * from here on. The driver does not list other contexts. */
void releases_find_older(void);

/* What this process counts now. Without a system call. */
void releases_read(struct counts *counts);

/* Where they are counted on that GPU: counts_own_places. */
unsigned int releases_places(struct pci_address pci, const struct counts_place *places[], unsigned int room);

/* A context has been created, and cannot launch yet; it is about to be destroyed. */
void releases_context_created(CUcontext context);
void releases_context_destroyed(CUcontext context);

#endif
