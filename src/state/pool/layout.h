/*
 * The memory of a pool (pool.h): the list of groups, written by root alone, and a page of demand for each group,
 * written by the programs of the group. Any word of a page may be nonsense at any time, and the page may be gone.
 */
#pragma once

#include "gpu/pci_address.h"
#include "state/revisions.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define POOL_GROUPS 16 /* of a pool; a program obeys no more claims anyway (time/gate/claims.h) */

/* --- the list ----------------------------------------------------------------------------------------------------- */

#define POOL_LIST "list" /* the name of the file; a page's name is the number of the group */
#define POOL_MAGIC UINT64_C(0x6c6f6f7067766e01) /* not text */
#define POOL_VERSION 1

struct pool_record {
	_Alignas(64) _Atomic uint64_t page; /* the inode number of the page; 0: no group. Written last */
	_Atomic uint64_t group;             /* the inode number of the group's file */
	_Atomic uint64_t is_client;         /* of MPS */
	_Atomic uint64_t number;            /* of the revision in force */
	revisions_ring ring;
};

struct pool_memory {
	_Atomic uint64_t magic;
	_Atomic uint64_t version;
	struct pool_record groups[POOL_GROUPS];
};

/* --- a page ------------------------------------------------------------------------------------------------------- */

#define POOL_SLOTS 64

enum pool_state {
	POOL_WANTS = 1,   /* work is in flight */
	POOL_UNKNOWN = 2, /* not known exactly */
	POOL_BORROWS = 4  /* borrows, and had work of late */
};

/* The demand of a program on a GPU. The program writes the whole slot at each look: a slot without a change belongs to
 * a dead, stopped or idle program. */
struct pool_slot {
	uint64_t owner; /* a random number; 0: the slot is free */
	struct pci_address pci;
	uint64_t beat;  /* rises with each write */
	uint64_t moves; /* rises if work began or ended since the last write */
	uint64_t state; /* of enum pool_state */
	uint64_t unused[2];
	uint64_t check; /* pool_check: a copy that mixes two writes has a wrong one */
};

struct pool_page {
	struct pool_slot slots[POOL_SLOTS];
};

#define POOL_PAGE sizeof(struct pool_page)

_Static_assert(POOL_PAGE == 4096, "shared layout");
_Static_assert(offsetof(struct pool_record, ring) == 32, "shared layout");

static inline uint64_t pool_check(const struct pool_slot *slot)
{
	const uint64_t *words = (const uint64_t *)slot;
	uint64_t check = 1;

	for (size_t i = 0; i < offsetof(struct pool_slot, check) / sizeof *words; i++)
		check = (check ^ words[i]) * UINT64_C(0x9e3779b97f4a7c15);
	return check;
}
