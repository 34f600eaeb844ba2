/*
 * Lets the GPU count the ended kernels of each context, and write the time of each end while somebody looks
 * (state/kernels/counts.h, state/kernels/timestamps.h, facts.md, "Releases").
 *
 * A context registers a place and a ring at the creation, before any launch: in a launch, the driver holds locks. We
 * never unregister: until the context is destroyed, any descriptor may write there, also of a graph. The values for
 * descriptors of the launch path are prepared here, once for each context.
 */
#pragma once

#include "cuda.h"
#include "gpu/qmd.h"
#include "state/kernels/counts_read.h"
#include "state/kernels/timestamps.h"

/* Of a context. Found with the context's GPU (contexts.h). */
struct releases {
	bool are_unknown;                          /* we have not heard of the context's creation */
	struct counts_place *place;                /* NULL: nothing is counted, and the reason is noted */
	bool are_ready;                            /* false: launches are counted, ends are not; the reason is noted */
	struct qmd_release of_kind[COUNTS_KINDS];  /* for descriptors of the GPU's family */
	struct timestamps *timestamps;                     /* NULL: ends get no time, and the reason is noted */
	uint64_t timestamps_at;                        /* the cells, for the GPU */
	struct qmd_release stamping;               /* into the first cell */
};

/* For a context that is older than our subscription. */
extern const struct releases releases_unknown __attribute__((visibility("hidden")));

/* From here on, counts go to areas (state/kernels/area.h), which the segment names; before, nothing is counted. Only
 * while no thread uses the driver: at the start, and in the child of a fork after releases_after_fork. */
void releases_use(const struct segment *segment);

/* In the child of a fork: the child has no context yet, and the areas are the parent's. */
void releases_after_fork(void);

/* The primary contexts of the GPUs, and the current context of this thread, may be older than our subscription: kernels
 * there are counted from here on. The driver lists no further contexts. */
void releases_find_older(void);

/* The counts of this process now. Without a system call. */
void releases_read(struct counts *counts);

/* The places of the counts on the GPU `pci`: counts_own_places. */
unsigned int releases_places(struct pci_address pci, const struct counts_place *places[], unsigned int room);

/* A context has been created, and cannot launch yet; or is about to be destroyed. */
void releases_context_created(CUcontext context);
void releases_context_destroyed(CUcontext context);
