/*
 * How many kernels a process has launched, and how many of them have ended, on each GPU.
 *
 * The GPU itself counts a kernel when it has ended (facts.md, "Releases"). It does so in memory of the process that
 * others can read: an area, which is a memfd of its own. It is not the segment, which may move to another file: what the
 * hardware writes to must never move, and is never unmapped. An area has places, one for each CUDA context, since memory
 * serves only the context that has registered it. A place is two pages: one that the hardware writes, and the library
 * only before that; and one in which the process's threads count what they launch.
 *
 * The segment names the areas. So whoever may read the segment finds them, through /proc/PID/fd. If the program has closed
 * an area's file, what was counted there can no longer be read, and the process's counts are incomplete.
 *
 * The process may be hostile: a reader believes neither the names nor the content, and sums do not wrap around.
 */
#ifndef NVTASKSET_STATE_KERNELS_COUNTS_H
#define NVTASKSET_STATE_KERNELS_COUNTS_H

#include "area.h"
#include "state/segment/segment.h"

/* How a kernel is launched. The hardware counts each kind for itself, so that a kind that cannot be compared with what
 * was launched does not spoil the others. */
enum counts_kind {
	COUNTS_PLAIN,   /* by a call that launches a kernel */
	COUNTS_NODE,    /* as a node of a graph, by a call that launches the graph */
	COUNTS_UNHEARD, /* as a node of a graph whose launches do not tell how often it runs: counts when it ends */
	COUNTS_KINDS
};

/* Why the number of ended kernels, or also that of launched ones, is not complete. X(identifier, text for users). */
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

/* --- the owner's side, in other people's processes -------------------------------------------------------------- */

/* The largest page of any kernel: contexts register whole pages. */
#if defined(__x86_64__)
#define COUNTS_PAGE 4096
#else
#define COUNTS_PAGE 65536
#endif

/* A place: for one context at a time. It begins with the COUNTS_PAGE bytes that the context must register. */
struct counts_place;

/* Where the hardware counts kernels of this kind that have ended: on a line of its own. */
_Atomic uint64_t *counts_ended(struct counts_place *place, enum counts_kind kind);

/* Where the thread that has this counter slot counts what it launches. */
_Atomic uint64_t *counts_launched(struct counts_place *place, const struct segment *segment, const struct counter_slot *slot);

/* Counts a launch there. Not an atomic addition: see counter_slot_count_launch.
 *
 * Relaxed on each machine: the driver's doorbell comes later, and orders all stores before it, since the GPU must see those of
 * the driver. So what the GPU does for this launch comes after this store, its addition to the ended ones, too. That is one
 * 64-bit access of an aligned word, as a processor's load is: it sees the number before or after. A reader that loads the
 * ended ones first, with acquire, sees the launch of each that has ended (counts_read.c); tests/litmus/ended.litmus. */
static inline void counts_launch(_Atomic uint64_t *launched)
{
	atomic_store_explicit(launched, atomic_load_explicit(launched, memory_order_relaxed) + 1, memory_order_relaxed);
}

/* The same for a thread without a slot of its own, from any thread. */
void counts_launch_shared(struct counts_place *place);

/* A graph with so many kernels has been launched. From any thread. */
void counts_launch_nodes(struct counts_place *place, uint64_t kernels);

/* A call that launches a graph begins, or has ended and its kernels are counted: these may run before they are. From any thread. */
void counts_graph_begins(struct counts_place *place);
void counts_graph_ended(struct counts_place *place);

/* Of the kernels of this kind that are counted as launched, so many are not counted when they end. From any thread. */
void counts_note_uncounted(struct counts_place *place, enum counts_kind kind, uint64_t kernels);

/* What the hardware counts there is not complete; without a place, the counts of all GPUs. From any thread. */
void counts_note_gap(struct counts_place *place, enum counts_gap gap);
void counts_note_gap_everywhere(const struct segment *segment, enum counts_gap gap);

/* The areas of this process. All zero is none. */
#define COUNTS_PLACES 32 /* of an area */

struct counts_areas {
	struct counts_area {
		struct area area;
		unsigned int used; /* so many of its places have been given out */
	} list[SEGMENT_AREAS];
	unsigned int count;
};

/* A place for a new context on this GPU: the first from the number `from` on whose context there has ended, or else one
 * that no context ever had. Areas are made when they are needed, also when the program has closed the last one's file:
 * below the address `reach` if possible. NULL with the reason. One call at a time. */
struct counts_place *counts_take(struct counts_areas *areas, const struct segment *segment, struct pci_address pci,
                                 uint64_t reach, unsigned int from, struct error *error);

/* 0 … SEGMENT_AREAS * COUNTS_PLACES - 1, in the order in which they were first taken. */
unsigned int counts_number(const struct counts_place *place);

/* The place's new context can launch, and the hardware writes for no former one; its context is about to be destroyed,
 * and kernels that have not ended are not in flight any more. */
void counts_begin(struct counts_place *place);
void counts_end(struct counts_place *place);

/* A place has begun: who reads some places of this process only looks for more. */
void counts_are_more(const struct segment *segment);

/* In the child of a fork: its parent's areas are not its own. */
void counts_after_fork(struct counts_areas *areas);

#endif
