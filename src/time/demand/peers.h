/*
 * The other programs on this process's GPUs that have a claim to their time or their TPCs: from the board
 * (state/board/board.h), and what each has in flight, read where it stands (demand.h, state/kernels/counts_view.h). For
 * our thread alone, but for the last one.
 */
#ifndef NVTASKSET_TIME_DEMAND_PEERS_H
#define NVTASKSET_TIME_DEMAND_PEERS_H

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
};

/* The same GPU for a client of MPS, whose kernels run beside those of other clients: only clients concern it that share a TPC
 * with it. Programs that are no clients have the whole GPU, in turn with all clients. */
struct peers_on_gpu {
	struct pci_address pci;
	struct tpcset own;    /* TPCs that this process has there, as in its claim */
	struct tpcset higher; /* TPCs of all higher ones that have work in flight */
	struct rivals rivals; /* only those that share a TPC with this process; so `higher`, too */
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

/* What the last look saw on one GPU after the other: `number` is 0, 1 …; false if there are no more. */
bool peers_seen(unsigned int number, struct peers_on_gpu *seen);

/* In the child of a fork. */
void peers_after_fork(void);

#endif
