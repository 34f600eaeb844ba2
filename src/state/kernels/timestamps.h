/*
 * The times at which a process's kernels have ended, on each GPU, while a watcher looks (state/segment/lease.h).
 *
 * Beside the place for the counts of a context (counts.h), there is a ring of cells. Each kernel launched while a
 * watcher looks gets the next cell. The GPU writes the kernel's number and the time into the cell (facts.md,
 * "Releases"). The launching thread writes a record beside the cell, with the function and the time of the launch.
 * Kernels in graphs have cells of their own, which each launch of the graph writes again; a launch of a graph has a
 * record in the ring.
 *
 * The memory is an area (area.h): place n belongs to place n of counts. A ring is never emptied: each reader notes its
 * own progress, and there can be any number of readers. Numbers only rise, so a reader recognises a reused cell.
 *
 * The owner's side, in foreign programs: no call here waits, or allocates memory except timestamps_take.
 */
#pragma once

#include "counts.h"
#include "gpu/qmd.h"

#define TIMESTAMPS_CELLS 8192 /* remembered launches of each context */
#define TIMESTAMPS_NODES 4096 /* nodes of graphs with a cell; the nodes of larger graphs take turns */

struct timestamps; /* the ring of a context */

/* The cells, which the GPU writes and a context must register. */
#define TIMESTAMPS_BYTES ((TIMESTAMPS_CELLS + TIMESTAMPS_NODES) * 16)
void *timestamps_cells(struct timestamps *timestamps);

/* Kernels with the same `stream` (below) run one after the other: `stream` names the stream, or, for an unknown stream,
 * has both bits of TIMESTAMPS_STREAM_UNKNOWN, as no stream has. */
#define TIMESTAMPS_STREAM_UNKNOWN UINT64_C(3)

/* The context's legacy stream: most streams wait for the legacy stream, and the legacy stream for most streams. */
#define TIMESTAMPS_STREAM_LEGACY UINT64_C(1)

/* A launch of a kernel. */
struct timestamps_launch {
	uint64_t launched_ns; /* base/clock.h */
	const void *function;
	uint64_t stream;
	unsigned int tpcs; /* that the kernel may use; 0: unknown */
	struct qmd_grid grid;
};

/* The content of the descriptor's release. */
struct timestamps_cell {
	uint64_t at; /* in bytes, from timestamps_cells on */
	uint64_t number;
};

/* Gives the launch a cell. From any thread. */
struct timestamps_cell timestamps_add_launch(struct timestamps *timestamps, const struct timestamps_launch *launch);

/* The launch with this timestamp (a cell's address in this process, and the number) may use as many TPCs from here on,
 * unless only the end is told, or a later launch has the cell. Any launch of the process. */
void timestamps_set_tpcs(const volatile uint64_t *timestamp, uint64_t number, unsigned int tpcs);

/* The same if only the end of the launch is told. */
struct timestamps_cell timestamps_add_end(struct timestamps *timestamps);

/* A node of a graph is uploaded: the node gets a cell, until another node gets the cell. From any thread. */
struct timestamps_node {
	const void *exec;
	const void *function;
	unsigned int tpcs;
	/* 0: a node. Otherwise the record is no node. Among the nodes (up to `last` of timestamps_graph) the record
	 * marks nodes without a cell. Behind the nodes, up to `end`: the number of kernels of `function` in the
	 * graph. */
	unsigned int nodes;
	struct qmd_grid grid;
};
struct timestamps_cell timestamps_add_node(struct timestamps *timestamps, const struct timestamps_node *node);

/* Replaces the record. False if another node has the cell, or the record is of another instance. */
bool timestamps_set_node(struct timestamps *timestamps, uint64_t number, const struct timestamps_node *node);

/* The cell of the node. */
struct timestamps_cell timestamps_node_cell(uint64_t number);

/* Whether the node still has the cell. */
bool timestamps_has_node(const struct timestamps *timestamps, uint64_t number);

/* A launch of a graph. Records `first` to `last` are the nodes; records behind, up to `end`, have the number of kernels
 * of each function. All three are 0 if the end of the launch will not be known. `kernels` counts all kernels, also
 * without a cell. */
struct timestamps_graph {
	uint64_t launched_ns;
	const void *exec;
	uint64_t stream; /* known */
	uint64_t first, last, end;
	unsigned int kernels;
};
uint64_t timestamps_add_graph(struct timestamps *timestamps, const struct timestamps_graph *graph);

/* Why times are missing. */
enum timestamps_gap {
	TIMESTAMPS_NO_SLOTS,
	TIMESTAMPS_REFUSED,
	TIMESTAMPS_SLOT_USED
};
void timestamps_note_gap(struct timestamps *timestamps, enum timestamps_gap gap);

/* The context is about to be destroyed: running kernels never end. */
void timestamps_end(struct timestamps *timestamps);

/* The context has begun. `is_shared_by_mps`: the kernels of several processes run at the same time, and times contain
 * no time slices of other processes. */
void timestamps_begin(struct timestamps *timestamps, bool is_shared_by_mps);

/* --- names of functions ----------------------------------------------------------------------------------------- */

/* Whether the ring has no name for the function: then ask the driver, and call timestamps_name. Forget all names when
 * functions may have gone, since addresses are used again. From any thread. */
bool timestamps_want_name(const struct timestamps *timestamps, const void *function);
void timestamps_name(struct timestamps *timestamps, const void *function, const char *name);
void timestamps_forget_names(void);

/* --- areas -------------------------------------------------------------------------------------------------------- */

struct timestamps_areas {
	struct area list[SEGMENT_AREAS];
};

/* The ring beside the place `number` of counts, on the GPU, below the address `reach` if possible. NULL with the
 * reason. One call at a time. */
struct timestamps *timestamps_take(struct timestamps_areas *areas, const struct segment *segment, unsigned int number,
                                   struct pci_address pci, uint64_t reach, struct error *error);

/* In the child of a fork: the areas belong to the parent. */
void timestamps_after_fork(struct timestamps_areas *areas);
