/*
 * A pool: groups of different containers lend, borrow and have priorities among each other, although no program sees
 * the processes of a foreign container. Root puts groups into a pool (file.h).
 *
 * Claims. The TPCs, the priority and the lending of each group stand in a list, and root alone can write the list. Only
 * groups have claims in a pool. A group without programs is idle.
 *
 * Demand. Each group has a page: the programs of the group write the page, and the rest of the pool reads the page. A
 * program has a slot of the page for each GPU: whether work is in flight, and a number that changes with work. A reader
 * takes nothing more from a page.
 *
 * Liveness. A pid means nothing in a foreign container. A program with work in flight writes the slots again and again.
 * If a reader sees no change of a slot for POOL_SILENCE_NS, the program is dead or stopped, and the demand ends. Only
 * the reader's own clock counts.
 *
 * Access. Only the kernel reads and writes pages (pages.h). A copy is checked, and goes into the views, in memory of
 * this process. Launches look at the views.
 *
 * Times are process_clock_ns's. For our thread (time/thread.h), but for pool_is_fresh and reading views. errno is
 * preserved.
 */
#pragma once

#include "layout.h"

#include <stdbool.h>

#define POOL_SILENCE_NS UINT64_C(100000000)
#define POOL_LAPSE_NS UINT64_C(10000000000) /* a slot without a change for so long is free */

/* How often a program with work, now or of late, writes and reads. */
#define POOL_LOOK_NS UINT64_C(250000)
#define POOL_TURN_NS UINT64_C(1000000) /* the same for programs without MPS */

/* In a container. */
#define POOL_MOUNTS "/opt/nvtaskset/pools" /* NAME: the list, and the pages of all groups, for reading */
#define POOL_PAGES "/opt/nvtaskset/pages"  /* NAME: the page of the group, for writing */

/* Takes part by the list and the pages in the directory, and the group's own page. False without a pool, or under a
 * lease on a file: then the next look may try again. No effect if the process takes part. Never waits. */
bool pool_enter(const char *directory, const char *page);

/* The same for the group with the name, if a container has the files, and cannot change the list. */
bool pool_enter_mounted(const char *group);

bool pool_is_there(void);

/* Whether the last pool_enter_mounted found a pool, and could not enter: a later try may. */
bool pool_is_kept_out(void);

/* Frees the process's slots, and forgets the pool. May be repeated. */
void pool_leave(void);

/* In the child of a fork: the slots belong to the parent. */
void pool_after_fork(void);

/* Tells the demand of this process on a GPU. `work`: a number that changes with work. */
struct pool_word {
	uint64_t work;
	unsigned int state; /* of enum pool_state */
};
void pool_tell(struct pci_address pci, const struct pool_word *word, uint64_t now);

/* Whether the process has a slot for each GPU, and is not kept out. */
bool pool_has_room(void);

/* Reads all pages. */
void pool_look(uint64_t now);

/* Whether the last look was within `ns`. From any thread. */
bool pool_is_fresh(uint64_t now, uint64_t ns);

/* The demand of a group on a GPU at the last look. A view stays where it is for ever. */
struct pool_view {
	_Atomic uint64_t moves; /* changes with work; to be read before `wants` */
	atomic_bool wants;
	atomic_bool is_unknown;
	unsigned int borrowers; /* programs that borrow, and had work of late */
};

/* A foreign group of the pool with TPCs of a GPU. */
struct pool_partner {
	uint64_t group; /* the inode number of the group's file */
	struct tpcset tpcs;
	uint32_t priority;
	uint32_t lend_us; /* 0: no lending */
	bool is_client, is_borrower;
	const struct pool_view *view;
};

/* The partner with the number, of POOL_GROUPS, on a GPU. False without a partner. */
bool pool_partner(unsigned int number, struct pci_address pci, struct pool_partner *partner);

/* How many further programs of the own group borrow on a GPU, and had work of late. */
unsigned int pool_own_borrowers(struct pci_address pci);
