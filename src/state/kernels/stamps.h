/*
 * The times at which a process's kernels have ended, on each GPU, while somebody looks (state/segment/lease.h).
 *
 * Beside the place in which a context's kernels are counted (counts.h) there is a ring of cells: each kernel that is
 * launched while somebody looks gets the next one, and the GPU writes into it the kernel's number and the time (facts.md,
 * "Releases"). What the kernel is, and when it was launched, the launching thread writes into a record beside it. Kernels
 * in graphs have cells of their own, which each launch of the graph writes again; such a launch has a record in the ring.
 *
 * The memory is an area, as that of counts: a memfd of its own, which never moves and is never unmapped, and whose place n
 * belongs to place n of counts. A ring is never emptied: readers know how far they have read, so there can be any number
 * of them, and numbers only rise, so that a reader recognises a cell that was written for another kernel.
 *
 * The owner's side, in other people's processes: no call here waits, or allocates memory except stamps_take.
 */
#ifndef NVTASKSET_STATE_KERNELS_STAMPS_H
#define NVTASKSET_STATE_KERNELS_STAMPS_H

#include "counts.h"

#define STAMPS_CELLS 8192 /* launches that are remembered, of each context */
#define STAMPS_NODES 4096 /* nodes of graphs that have a cell; larger graphs' take turns */

struct stamps; /* the ring of a context */

/* Where the hardware writes, which a context must register; and where in it a kernel's cell lies. */
#define STAMPS_BYTES ((STAMPS_CELLS + STAMPS_NODES) * 16)
void *stamps_cells(struct stamps *stamps);

/* Kernels with the same value run one after the other: of its stream, if that is known; otherwise of something else, and with
 * these bits, which no stream has. */
#define STAMPS_STREAM_UNKNOWN UINT64_C(3)

/* The context's legacy stream: most others wait for it, and it for them. */
#define STAMPS_STREAM_LEGACY UINT64_C(1)

/* A kernel is launched. */
struct stamps_launch {
	uint64_t launched_ns; /* base/clock.h */
	const void *function;
	uint64_t stream;
	unsigned int tpcs; /* that it may use; 0 if that is unknown */
};

/* What the descriptor's release must say. */
struct stamps_cell {
	uint64_t at; /* in bytes, from stamps_cells on */
	uint64_t number;
};

/* Gives it a cell. From any thread. */
struct stamps_cell stamps_add_launch(struct stamps *stamps, const struct stamps_launch *launch);

/* A node of a graph is uploaded: it gets a cell for as long as nobody else gets the same one. From any thread. */
struct stamps_node {
	const void *exec;
	const void *function;
	unsigned int tpcs;
	unsigned int nodes; /* not 0: no node, but how many of the graph's nodes are kernels of this function; or, before the
	                     * last node, a break: nodes that have no cell lie there */
};
struct stamps_cell stamps_add_node(struct stamps *stamps, const struct stamps_node *node);

/* Says something else of it. False if its cell is not its own any more, or it is of another instance. */
bool stamps_set_node(struct stamps *stamps, uint64_t number, const struct stamps_node *node);

/* Where its cell is. */
struct stamps_cell stamps_node_cell(uint64_t number);

/* Whether its cell is its own. */
bool stamps_has_node(const struct stamps *stamps, uint64_t number);

/* A graph is launched whose nodes with cells have the numbers `first` to `last`; up to `end`, there is how many nodes each
 * function has. All 0: when it ends is not known. `kernels` is how many it has, with those that have no cell. */
struct stamps_graph {
	uint64_t launched_ns;
	const void *exec;
	uint64_t stream; /* which is known */
	uint64_t first, last, end;
	unsigned int kernels;
};
uint64_t stamps_add_graph(struct stamps *stamps, const struct stamps_graph *graph);

/* Why times are missing there. */
enum stamps_gap {
	STAMPS_NO_SLOTS,
	STAMPS_REFUSED,
	STAMPS_SLOT_USED,
	STAMPS_GAP_COUNT
};
void stamps_note_gap(struct stamps *stamps, enum stamps_gap gap);

/* The context is about to be destroyed: what has not ended never will. */
void stamps_end(struct stamps *stamps);

/* The context has begun; whether its kernels and those of others run at the same time, so that times contain no time
 * slices of others. */
void stamps_begin(struct stamps *stamps, bool is_shared_by_mps);

/* --- names of functions ----------------------------------------------------------------------------------------- */

/* Whether the function's name is not known where this ring lies: then ask the driver, and tell it. Forget them when
 * functions may have gone, since their addresses are used again. From any thread. */
bool stamps_want_name(const struct stamps *stamps, const void *function);
void stamps_name(struct stamps *stamps, const void *function, const char *name);
void stamps_forget_names(void);

/* --- areas -------------------------------------------------------------------------------------------------------- */

struct stamps_areas {
	struct area list[SEGMENT_AREAS];
};

/* The ring beside the place `number` of counts, on this GPU, below the address `reach` if possible. NULL with the reason.
 * One call at a time. */
struct stamps *stamps_take(struct stamps_areas *areas, const struct segment *segment, unsigned int number,
                           struct pci_address pci, uint64_t reach, struct error *error);

/* In the child of a fork: its parent's areas are not its own. */
void stamps_after_fork(struct stamps_areas *areas);

#endif
