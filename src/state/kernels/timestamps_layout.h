/* The memory of an area of timestamps (timestamps.h), as mapped by the owner and by readers. */
#pragma once

#include "timestamps.h"

#define TIMESTAMPS_NAME "nvtaskset-times"
#define TIMESTAMPS_MAGIC UINT64_C(0x656d69747464766e)
#define TIMESTAMPS_VERSION 4

/* A bit of the number of a node's cell, and not of a launch's cell. */
#define TIMESTAMPS_IS_NODE (UINT64_C(1) << 63)

enum timestamps_kind {
	TIMESTAMPS_LAUNCH,
	TIMESTAMPS_GRAPH
};

/* In the order of the GPU's writes. */
struct timestamp {
	_Atomic uint64_t number, time;
};

/* A launch, of a kernel or a graph. */
struct timestamps_record {
	_Atomic uint64_t number; /* 0 while being written */
	_Atomic uint64_t kind;
	_Atomic uint64_t launched_ns;
	_Atomic uint64_t function; /* for a graph: the number of the first node */
	_Atomic uint64_t stream;
	_Atomic uint64_t tpcs;     /* for a graph: the number of kernels */
	_Atomic uint64_t grid;     /* struct qmd_grid; for a graph: the instance */
	/* For a graph: last node - first node; in the upper half, last function - first node. */
	_Atomic uint64_t nodes;
};

struct timestamps_node_record {
	_Atomic uint64_t number; /* 0 while being written */
	_Atomic uint64_t exec;
	_Atomic uint64_t function;
	_Atomic uint64_t tpcs;
	_Atomic uint64_t grid;
	_Atomic uint64_t nodes; /* not 0: the number of kernels of the function in the graph */
};

/* Names of functions are only ever added. */
#define TIMESTAMPS_FUNCTIONS 1024
#define TIMESTAMPS_TEXT (1 << 18)
#define TIMESTAMPS_NAME_MAX 4096

struct timestamps_names {
	_Atomic uint64_t count; /* complete entries; the last entry of a function counts */
	struct {
		_Atomic uint64_t function;
		_Atomic uint64_t begin;
		_Atomic uint64_t length;
	} list[TIMESTAMPS_FUNCTIONS];
	char text[TIMESTAMPS_TEXT];
};

struct timestamps {
	/* Pages that the GPU writes. */
	_Alignas(COUNTS_PAGE) struct timestamp cells[TIMESTAMPS_CELLS + TIMESTAMPS_NODES];

	/* Pages that the owner's threads write. */
	_Alignas(COUNTS_PAGE) _Atomic uint64_t magic; /* written last */
	struct pci_address pci;                       /* all 0 if the GPU is unknown */
	_Atomic uint64_t gaps;                        /* a bit for each enum timestamps_gap */
	_Atomic uint64_t is_shared_by_mps;
	_Atomic uint64_t gone; /* all launches up to this number have ended, or never will */
	_Alignas(64) _Atomic uint64_t launches; /* the last number given */
	_Alignas(64) _Atomic uint64_t nodes;
	_Alignas(64) struct timestamps_record records[TIMESTAMPS_CELLS];
	struct timestamps_node_record node_records[TIMESTAMPS_NODES];
	struct timestamps_names names;
};

struct timestamps_memory {
	struct area_header header;
	_Alignas(COUNTS_PAGE) struct timestamps rings[COUNTS_PLACES];
};

extern const struct area_kind timestamps_area_kind;

_Static_assert(TIMESTAMPS_BYTES % COUNTS_PAGE == 0, "registered as whole pages");
_Static_assert(offsetof(struct timestamps, magic) == TIMESTAMPS_BYTES, "shared layout");
_Static_assert(sizeof(struct timestamps_record) == 64, "shared layout");
_Static_assert(sizeof(struct qmd_grid) == sizeof(uint64_t), "shared layout");
_Static_assert(sizeof(struct timestamp) == 16, "as the hardware writes it");
