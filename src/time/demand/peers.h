/*
 * The other programs on this process's GPUs that have a claim to their time or their TPCs: from the board
 * (state/board/board.h), and what each has in flight, read where it stands (demand.h, state/kernels/counts_read.h). For
 * our thread alone, but for the last one.
 */
#ifndef NVTASKSET_TIME_DEMAND_PEERS_H
#define NVTASKSET_TIME_DEMAND_PEERS_H

#include "state/board/board.h"
#include "state/kernels/counts_read.h"
#include "time/rules/rivals.h"
#include "work.h"

#include <stdbool.h>
#include <stdint.h>

/* Another program on a GPU, alive at the last look. */
struct peer {
	struct board_peer is;
	struct counts_view view;
	struct demand demand;
	uint64_t asked; /* whether it is alive, at this moment; */
	bool is_alive;  /* it was */
	bool is_listed; /* among those that have been seen; */
	bool is_seen;   /* at this look */
};

/* From here on the process takes part; a look through /proc where there is no board yet. */
void peers_join(void);
void peers_leave(void);

/* Claims the GPUs of the process with `self`, where the GPU, the TPCs and the time are still to be filled in, and reads
 * the claims of others. Returns the rivals on the GPU on which the process has most to give way to. Now and then this
 * looks for a board that comes first. */
struct rivals peers_look(uint64_t now, const struct work *work, const struct board_claim *self);

/* Whether a peer of the last look has a number (company.h). */
bool peers_have_a_number(void);

/* The TPCs that launches of this process may use on a GPU. */
struct tpcset peers_own(struct pci_address pci);

/* The peers that the last look saw on a GPU: `at` is 0 for the first, and is moved on behind the peer that is returned; NULL if
 * there are no more. Until the next look. */
const struct peer *peers_next(struct pci_address pci, unsigned int *at);

/* In the child of a fork. */
void peers_after_fork(void);

#endif
