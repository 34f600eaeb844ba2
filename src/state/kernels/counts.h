/*
 * The numbers of kernels that a process has launched, and of kernels that have ended, on each GPU.
 *
 * The GPU itself counts an ended kernel (facts.md, "Releases"), in an area: memory of the process that other processes
 * can read (area.h). An area has a place for each CUDA context, since only the context that registered memory can use
 * the memory. A place has two pages. The GPU writes the first page; the library writes there only before the GPU. The
 * process's threads count launches in the second page.
 *
 * The segment names the areas: a process that may read the segment finds the areas through /proc/PID/fd. If the program
 * has closed the file of an area, the counts in the area are out of reach, and the process's counts are incomplete.
 *
 * The process may be hostile: a reader believes neither the names nor the content, and sums do not wrap around.
 */
#pragma once

#include "area.h"
#include "state/segment/segment.h"

/* How a kernel is launched. The GPU counts the kinds apart: a kind with unknown launches does not spoil the other
 * kinds. */
enum counts_kind {
	COUNTS_PLAIN,   /* a call launches the kernel */
	COUNTS_NODE,    /* a call launches a graph with the kernel as a node */
	COUNTS_UNHEARD, /* a node of a graph with an unknown number of runs: counts when ended */
	COUNTS_KINDS
};

/* Why the number of ended kernels, or of launched kernels too, is incomplete. X(identifier, text for users). */
#define COUNTS_GAPS(X)                                                                        \
	X(OFF, "counting is turned off (NVTASKSET_ACCOUNT)")                                  \
	X(NO_MEMORY, "there is no memory to count in")                                        \
	X(NO_SLOTS, "this GPU, or its driver, cannot count them")                            \
	X(REFUSED, "the driver did not let the GPU write the counts")                         \
	X(SLOT_USED, "something else uses what counts in the launch descriptor")              \
	X(OLDER, "a context or a graph is older than nvtaskset in this process")              \
	X(CLOSED, "the program has closed the file of its counts")                            \
	X(REPEATED, "Nsight Compute runs its kernels again and again")                        \
	X(UNSEEN, "only the GPU knows how often a graph runs them, and it does not count")     \
	X(INCOHERENT, "this processor may not see the GPU's writes in time")

enum counts_gap {
#define COUNTS_GAP_ENUM(identifier, text) COUNTS_##identifier,
	COUNTS_GAPS(COUNTS_GAP_ENUM)
#undef COUNTS_GAP_ENUM
	COUNTS_GAP_COUNT
};

const char *counts_gap_text(enum counts_gap gap);

/* --- the owner's side, in foreign programs ------------------------------------------------------------------------ */

/* The largest page of any kernel: contexts register whole pages. */
#if defined(__x86_64__)
#define COUNTS_PAGE 4096
#else
#define COUNTS_PAGE 65536
#endif

/* A place for a context at a time. The first COUNTS_PAGE bytes are for the context to register. */
struct counts_place;

/* The word in which the GPU counts ended kernels of the kind, on a cache line of its own. */
_Atomic uint64_t *counts_ended(struct counts_place *place, enum counts_kind kind);

/* The word in which the thread with the counter slot counts launches. */
_Atomic uint64_t *counts_launched(struct counts_place *place, const struct segment *segment,
                                  const struct counter_slot *slot);

/* Counts a launch. Not an atomic addition: see segment_slot_count_launch.
 *
 * Relaxed on each machine: the driver's doorbell comes later, and orders all stores before the doorbell, since the GPU
 * must see the driver's stores. So the GPU counts the end of the launch after this store. The addition of the GPU is a
 * single 64-bit access of an aligned word, as a load is: a load sees the number before or after. A reader that loads
 * the ended kernels first, with acquire, sees the launch of each ended kernel (counts_read.c);
 * tests/litmus/ended.litmus. */
static inline void counts_launch(_Atomic uint64_t *launched)
{
	atomic_store_explicit(launched, atomic_load_explicit(launched, memory_order_relaxed) + 1, memory_order_relaxed);
}

/* The same for a thread without a slot, from any thread. */
void counts_launch_shared(struct counts_place *place);

/* A graph with `kernels` kernels has been launched. From any thread. */
void counts_launch_nodes(struct counts_place *place, uint64_t kernels);

/* A call begins to launch a graph, or has ended with the kernels counted. In between, kernels may run that are not
 * counted yet. From any thread. */
void counts_graph_begins(struct counts_place *place);
void counts_graph_ended(struct counts_place *place);

/* The GPU will not count the end of `kernels` launched kernels of the kind. From any thread. */
void counts_note_uncounted(struct counts_place *place, enum counts_kind kind, uint64_t kernels);

/* The GPU's counts of the place, or else of all GPUs, are incomplete. From any thread. */
void counts_note_gap(struct counts_place *place, enum counts_gap gap);
void counts_note_gap_everywhere(const struct segment *segment, enum counts_gap gap);

#define COUNTS_PLACES 32 /* of an area */

struct counts_areas { /* of this process; all zero: no area */
	struct counts_area {
		struct area area;
		unsigned int used; /* number of places given out */
	} list[SEGMENT_AREAS];
	unsigned int count;
};

/* A place for a new context on the GPU: the first place of an ended context with a number of at least `from`, or else a
 * new place. Makes areas as needed, also if the program has closed the file of the last area: below the address `reach`
 * if possible. NULL with the reason. One call at a time. */
struct counts_place *counts_take(struct counts_areas *areas, const struct segment *segment, struct pci_address pci,
                                 uint64_t reach, unsigned int from, struct error *error);

/* 0 … SEGMENT_AREAS * COUNTS_PLACES - 1, in the order of first use. */
unsigned int counts_number(const struct counts_place *place);

/* counts_begin: the new context of the place can launch, and the GPU writes for no former context. counts_end: the
 * context is about to be destroyed, and its kernels are no longer in flight. */
void counts_begin(struct counts_place *place);
void counts_end(struct counts_place *place);

/* A place has begun: readers of some places of this process look for more. */
void counts_announce(const struct segment *segment);

void counts_after_fork(struct counts_areas *areas); /* in the child: the areas belong to the parent */
