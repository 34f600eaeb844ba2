/* The memory of an area of counts (counts.h), as mapped by the owner and by readers. */
#pragma once

#include "area.h"
#include "counts.h"

#define COUNTS_NAME "nvtaskset-counts"
#define COUNTS_MAGIC UINT64_C(0x636b73617464766e)
#define COUNTS_VERSION 3

enum counts_state {
	COUNTS_UNUSED, /* free, or the context is not ready yet */
	COUNTS_IN_USE,
	COUNTS_ENDED /* the context is destroyed, or is about to be */
};

struct counts_place {
	/* The page that the GPU writes. The first line is written before the context registers the page. */
	_Alignas(COUNTS_PAGE) _Atomic uint64_t magic; /* written last */
	struct pci_address pci;                       /* all 0 if the GPU is unknown */
	uint64_t number;
	struct {
		_Alignas(64) _Atomic uint64_t kernels;
	} ended[COUNTS_KINDS];

	/* The page that the owner's threads write. */
	_Alignas(COUNTS_PAGE) _Atomic uint64_t state; /* enum counts_state */
	_Atomic uint64_t gaps;                        /* a bit for each enum counts_gap */
	_Atomic uint64_t plain;                       /* launched by threads without a slot */
	_Atomic uint64_t nodes;                       /* launched in graphs */
	_Atomic uint64_t uncounted[COUNTS_UNHEARD];   /* launched, and never counted as ended: plain, nodes */
	/* The upper 48 bits change with all but launches in slots. The lower 16 bits: calls that launch graphs, and
	 * have not ended. */
	_Atomic uint64_t moves;
	_Atomic uint64_t used;                        /* a bit for each slot in use, set before counting */
	struct {
		_Alignas(64) _Atomic uint64_t plain;
	} slots[COUNTER_SLOTS - 1]; /* slot n of the segment is at n - 1: slot 0 has no owner */
};

/* In `moves`. */
#define COUNTS_MOVE (UINT64_C(1) << 16)
#define COUNTS_GRAPH_BEGINS (COUNTS_MOVE | 1)
#define COUNTS_GRAPHS_OPEN UINT64_C(0xffff)

struct counts_memory {
	struct area_header header;
	struct counts_place places[COUNTS_PLACES];
};

extern const struct area_kind counts_area_kind;

/* The number of plain kernels that the process's threads have launched. */
uint64_t counts_place_plain(const struct counts_place *place);

_Static_assert(offsetof(struct counts_place, ended) == 64, "shared layout");
_Static_assert(offsetof(struct counts_place, state) == COUNTS_PAGE, "shared layout");
_Static_assert(offsetof(struct counts_place, slots) == COUNTS_PAGE + 64, "shared layout");
_Static_assert(sizeof(struct counts_place) == 2 * COUNTS_PAGE, "shared layout");
_Static_assert(offsetof(struct counts_memory, places) == COUNTS_PAGE, "shared layout");
