/*
 * The other programs on this process's GPUs that have a claim to their time or their TPCs: from the board
 * (state/board/board.h), and what each has in flight, read where it stands (demand.h, state/kernels/counts_read.h). For
 * our thread alone, but for the last one.
 */
#ifndef NVTASKSET_TIME_DEMAND_PEERS_H
#define NVTASKSET_TIME_DEMAND_PEERS_H

#include "state/board/board.h"
#include "state/kernels/counts_read.h"
#include "state/segment/segment.h"
#include "time/rules/rivals.h"
#include "work.h"

#include <stdbool.h>
#include <stdint.h>

/* What this process claims on all of its GPUs. */
struct peers_self {
	uint32_t priority, weight;
	uint64_t group;     /* 0: its share of the time is its alone */
	uint64_t served_ns; /* rules/weight.h */
	bool is_suspended;
	bool is_client;     /* of MPS */
	bool is_borrower;
	bool pauses;        /* demand.h */
	uint32_t lend_us;   /* 0: it lends nothing */
};

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

/* The partition, and the segment through which others read its demand, that its claims name from the next look on. Where the
 * partition cannot be enforced, the process shares TPCs with all. */
void peers_have(const struct segment *segment, const struct segment_revision *revision);

/* From here on the process takes part; the first call joins the board, which takes a look through /proc. */
void peers_join(void);
void peers_leave(void);

/* Writes the process's claims, and reads the others. Returns the rivals on the GPU on which it has most to
 * give way to. Now and then this looks for a board that comes first. */
struct rivals peers_look(uint64_t now, const struct work *work, const struct peers_self *self);

/* Whether a peer of the last look has a number (company.h). */
bool peers_have_a_number(void);

/* Whether others see what this process claims, as of the last look: not where the board had no place left. */
bool peers_have_room(void);

/* The TPCs that this process has on a GPU, as in its claim; and the others that the last look saw there: `at` is 0 for the first,
 * and is moved on behind the peer that is returned; NULL if there are no more. Until the next look. */
struct tpcset peers_own(struct pci_address pci);
const struct peer *peers_next(struct pci_address pci, unsigned int *at);

/* In the child of a fork. */
void peers_after_fork(void);

#endif
