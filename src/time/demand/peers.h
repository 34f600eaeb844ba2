/*
 * Peers: the other programs on the GPUs of this process, with a claim to time or TPCs. The claims are from the board
 * (state/board/board.h), the work in flight from the counts of each peer (demand.c, state/kernels/counts_read.h). A
 * group of another container is a peer as well, by the pool (state/pool/pool.h). For our thread alone, except
 * peers_after_fork.
 */
#pragma once

#include "state/board/board.h"
#include "state/kernels/counts_read.h"
#include "state/pool/pool.h"
#include "time/rules/rivals.h"
#include "work.h"

/* Another program on a GPU, alive at the last look. */
struct peer {
	struct board_peer is;           /* of a group in the pool, without a process */
	const struct pool_view *pooled; /* the demand of a group in the pool; NULL: a program on the board */
	struct counts_view view;
	struct demand demand;
	uint64_t asked; /* the time of the last question whether the peer is alive */
	bool is_alive;  /* the answer */
	bool is_listed; /* in the list of peers */
	bool is_seen;   /* seen at this look */
};

/* The process takes part from here on. Without a board, looks through /proc for a board. With a pool in the container,
 * takes part in the pool, too. */
void peers_join(const struct group *group);
void peers_leave(void);

/* Claims the GPUs of the process with `self`, after filling in the GPU, the TPCs and the time, and reads the claims of
 * peers. Returns the rivals on the GPU with most to give way to. Now and then looks for a board that comes first. */
struct rivals peers_look(uint64_t now, const struct work *work, const struct board_claim *self);

/* Tells the pool of the work of this process, and with `reads` looks at the pool. peers_look does both, too. */
void peers_share(uint64_t now, const struct work *work, const struct board_claim *self, bool reads);

/* Whether a peer of the last look has a number (company.h). */
bool peers_have_a_number(void);

/* The TPCs that launches of this process may use on a GPU. */
struct tpcset peers_own(struct pci_address pci);

/* The next living peer that the last look saw on a GPU: `at` is 0 for the first, and moves behind the returned peer;
 * NULL at the end. Valid until the next look. */
const struct peer *peers_next(struct pci_address pci, unsigned int *at);

/* In the child of a fork. */
void peers_after_fork(void);
