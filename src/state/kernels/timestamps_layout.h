/*
 * The memory of an area of timestamps, as its owner and readers map it. timestamps.h says what it is for.
 */
#ifndef NVTASKSET_STATE_KERNELS_TIMESTAMPS_LAYOUT_H
#define NVTASKSET_STATE_KERNELS_TIMESTAMPS_LAYOUT_H

#include "timestamps.h"

#include <stddef.h>

#define TIMESTAMPS_NAME "nvtaskset-times"
#define TIMESTAMPS_MAGIC UINT64_C(0x656d69747464766e)
#define TIMESTAMPS_VERSION 3

/* The number of a node's cell has this bit, that of a launch has not. */
#define TIMESTAMPS_IS_NODE (UINT64_C(1) << 63)

enum timestamps_kind {
	TIMESTAMPS_LAUNCH,
	TIMESTAMPS_GRAPH
};

/* In the order in which the hardware writes them. */
struct timestamp {
	_Atomic uint64_t number, time;
};

/* A launch, of a kernel or a graph. */
struct timestamps_record {
	_Atomic uint64_t number; /* 0 while it is written */
	_Atomic uint64_t kind;
	_Atomic uint64_t launched_ns;
	_Atomic uint64_t function; /* the number of its first node, for a graph */
	_Atomic uint64_t stream;
	_Atomic uint64_t tpcs;     /* how many kernels, for a graph */
	_Atomic uint64_t exec;     /* of a graph: its instance */
	_Atomic uint64_t nodes; /* of a graph: so far behind its first node are the last one and, in the upper half, the
	                         * last function's */
};

struct timestamps_node_record {
	_Atomic uint64_t number; /* 0 while it is written */
	_Atomic uint64_t exec;
	_Atomic uint64_t function;
	_Atomic uint64_t tpcs;
	_Atomic uint64_t nodes; /* not 0: so many nodes of the graph are kernels of the function */
};

/* Names of functions are only ever added. */
#define TIMESTAMPS_FUNCTIONS 1024
#define TIMESTAMPS_TEXT (1 << 18)
#define TIMESTAMPS_NAME_MAX 4096

struct timestamps_names {
	_Atomic uint64_t count; /* so many are complete; of one function, the last counts */
	struct {
		_Atomic uint64_t function;
		_Atomic uint64_t begin;
		_Atomic uint64_t length;
	} list[TIMESTAMPS_FUNCTIONS];
	char text[TIMESTAMPS_TEXT];
};

struct timestamps {
	/* Pages that the hardware writes. */
	_Alignas(COUNTS_PAGE) struct timestamp cells[TIMESTAMPS_CELLS + TIMESTAMPS_NODES];

	/* Pages that the owner's threads write. */
	_Alignas(COUNTS_PAGE) _Atomic uint64_t magic; /* last */
	struct pci_address pci;                       /* all 0 if the GPU is unknown */
	_Atomic uint64_t gaps;                        /* a bit for each enum timestamps_gap */
	_Atomic uint64_t is_shared_by_mps;
	_Atomic uint64_t gone; /* what was launched up to this number has ended, or never will */
	_Alignas(64) _Atomic uint64_t launches; /* the last number that was given */
	_Alignas(64) _Atomic uint64_t nodes;
	_Alignas(64) struct timestamps_record records[TIMESTAMPS_CELLS];
	struct timestamps_node_record node_records[TIMESTAMPS_NODES];
	struct timestamps_names names;
};

struct timestamps_memory {
	struct area_header header;
	_Alignas(COUNTS_PAGE) struct timestamps rings[COUNTS_PLACES];
};

extern const struct area_kind area_of_timestamps;

_Static_assert(TIMESTAMPS_BYTES % COUNTS_PAGE == 0, "registered as whole pages");
_Static_assert(offsetof(struct timestamps, magic) == TIMESTAMPS_BYTES, "shared layout");
_Static_assert(sizeof(struct timestamps_record) == 64, "shared layout");
_Static_assert(sizeof(struct timestamp) == 16, "as the hardware writes it");

#endif
