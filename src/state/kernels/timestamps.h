/*
 * The times at which a process's kernels have ended, on each GPU, while somebody looks (state/segment/lease.h).
 *
 * Beside the place in which a context's kernels are counted (counts.h) there is a ring of cells: each kernel that is
 * launched while somebody looks gets the next one, and the GPU writes into it the kernel's number and the time
 * (facts.md, "Releases"). What the kernel is, and when it was launched, the launching thread writes into a record
 * beside it. Kernels in graphs have cells of their own, which each launch of the graph writes again; such a launch has
 * a record in the ring.
 *
 * The memory is an area, as that of counts: a memfd of its own, which never moves and is never unmapped, and whose
 * place n belongs to place n of counts. A ring is never emptied: readers know how far they have read, so there can be
 * any number of them, and numbers only rise, so that a reader recognises a cell that was written for another kernel.
 *
 * The owner's side, in other people's processes: no call here waits, or allocates memory except timestamps_take.
 */
#ifndef NVTASKSET_STATE_KERNELS_TIMESTAMPS_H
#define NVTASKSET_STATE_KERNELS_TIMESTAMPS_H

#include "counts.h"

#define TIMESTAMPS_CELLS 8192 /* launches that are remembered, of each context */
#define TIMESTAMPS_NODES 4096 /* nodes of graphs that have a cell; larger graphs' take turns */

struct timestamps; /* the ring of a context */

/* Where the hardware writes, which a context must register; and where in it a kernel's cell lies. */
#define TIMESTAMPS_BYTES ((TIMESTAMPS_CELLS + TIMESTAMPS_NODES) * 16)
void *timestamps_cells(struct timestamps *timestamps);

/* Kernels with the same value run one after the other: of its stream, if that is known; otherwise of something else,
 * and with these bits, which no stream has. */
#define TIMESTAMPS_STREAM_UNKNOWN UINT64_C(3)

/* The context's legacy stream: most others wait for it, and it for them. */
#define TIMESTAMPS_STREAM_LEGACY UINT64_C(1)

/* A kernel is launched. */
struct timestamps_launch {
	uint64_t launched_ns; /* base/clock.h */
	const void *function;
	uint64_t stream;
	unsigned int tpcs; /* that it may use; 0 if that is unknown */
};

/* What the descriptor's release must say. */
struct timestamps_cell {
	uint64_t at; /* in bytes, from timestamps_cells on */
	uint64_t number;
};

/* Gives it a cell. From any thread. */
struct timestamps_cell timestamps_add_launch(struct timestamps *timestamps, const struct timestamps_launch *launch);

/* The same where only the end of the launch is told. */
struct timestamps_cell timestamps_add_end(struct timestamps *timestamps);

/* A node of a graph is uploaded: it gets a cell for as long as nobody else gets the same one. From any thread. */
struct timestamps_node {
	const void *exec;
	const void *function;
	unsigned int tpcs;
	unsigned int nodes; /* not 0: no node, but how many of the graph's nodes are kernels of this function; or,
	                     * before the last node, a break: nodes that have no cell lie there */
};
struct timestamps_cell timestamps_add_node(struct timestamps *timestamps, const struct timestamps_node *node);

/* Says something else of it. False if its cell is not its own any more, or it is of another instance. */
bool timestamps_set_node(struct timestamps *timestamps, uint64_t number, const struct timestamps_node *node);

/* Where its cell is. */
struct timestamps_cell timestamps_node_cell(uint64_t number);

/* Whether its cell is its own. */
bool timestamps_has_node(const struct timestamps *timestamps, uint64_t number);

/* A graph is launched whose nodes with cells have the numbers `first` to `last`; up to `end`, there is how many nodes
 * each function has. All 0: when it ends is not known. `kernels` is how many it has, with those that have no cell. */
struct timestamps_graph {
	uint64_t launched_ns;
	const void *exec;
	uint64_t stream; /* which is known */
	uint64_t first, last, end;
	unsigned int kernels;
};
uint64_t timestamps_add_graph(struct timestamps *timestamps, const struct timestamps_graph *graph);

/* Why times are missing there. */
enum timestamps_gap {
	TIMESTAMPS_NO_SLOTS,
	TIMESTAMPS_REFUSED,
	TIMESTAMPS_SLOT_USED,
	TIMESTAMPS_GAP_COUNT
};
void timestamps_note_gap(struct timestamps *timestamps, enum timestamps_gap gap);

/* The context is about to be destroyed: what has not ended never will. */
void timestamps_end(struct timestamps *timestamps);

/* The context has begun; whether its kernels and those of others run at the same time, so that times contain no time
 * slices of others. */
void timestamps_begin(struct timestamps *timestamps, bool is_shared_by_mps);

/* --- names of functions ----------------------------------------------------------------------------------------- */

/* Whether the function's name is not known where this ring lies: then ask the driver, and tell it. Forget them when
 * functions may have gone, since their addresses are used again. From any thread. */
bool timestamps_want_name(const struct timestamps *timestamps, const void *function);
void timestamps_name(struct timestamps *timestamps, const void *function, const char *name);
void timestamps_forget_names(void);

/* --- areas -------------------------------------------------------------------------------------------------------- */

struct timestamps_areas {
	struct area list[SEGMENT_AREAS];
};

/* The ring beside the place `number` of counts, on this GPU, below the address `reach` if possible. NULL with the
 * reason. One call at a time. */
struct timestamps *timestamps_take(struct timestamps_areas *areas, const struct segment *segment, unsigned int number,
                                   struct pci_address pci, uint64_t reach, struct error *error);

/* In the child of a fork: its parent's areas are not its own. */
void timestamps_after_fork(struct timestamps_areas *areas);

#endif
