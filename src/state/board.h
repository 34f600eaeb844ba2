/*
 * The board: where programs of one user that were given a priority or a weight find each other, and say what they want
 * on which GPU.
 *
 * Where it lies. In a memfd that each of them holds open. Nobody else keeps it, so it is gone with the last of them,
 * and nothing is left behind. Who comes looks for it through /proc; who finds none makes one. Two that come at the same
 * time make two: each looks again from time to time, and goes to the one that comes first in an order that all see
 * alike. Root's programs go to a user's. Those who cannot see each other, in other PID namespaces, do not know each
 * other.
 *
 * What stands there. A place for each process and GPU, which only its owner writes, as a whole and again and again. A
 * claim (that it wants to run) holds only for BOARD_FRESH_NS: who dies or is stopped at any instruction leaves nothing
 * that others wait for longer. Who is alive is pid, start time and PID namespace, never a lock. A place whose owner has
 * gone, or has said nothing for BOARD_LAPSE_NS, is free for the next one.
 *
 * Who may what. The kernel decides: the user and root may open it. A hostile program of the same user can write
 * anything: readers check what they copy, an owner's next writing puts its own place right, and whoever reads waits no
 * longer than the bounds of the rules say (shim/rules.h). It is sealed against changes of its size.
 *
 * Times are CLOCK_MONOTONIC, in ns, the same for all processes of a machine (process_clock.h). In another time
 * namespace, what others say is too old or too far ahead: nobody is there. In no launch. One thread at a time for all
 * of these. errno is preserved.
 */
#ifndef NVTASKSET_BOARD_H
#define NVTASKSET_BOARD_H

#include "base/error.h"
#include "gpu/pci_address.h"
#include "gpu/tpcset.h"

#include <stdbool.h>
#include <stdint.h>

#define BOARD_PLACES 256

/* So long after it was said, a claim that wants is one; so long, somebody is there; so long, it keeps its place. */
#define BOARD_FRESH_NS UINT64_C(10000000)
#define BOARD_ALIVE_NS UINT64_C(3000000000)
#define BOARD_LAPSE_NS UINT64_C(10000000000)

/* What a process says of itself on one GPU. */
struct board_claim {
	struct pci_address pci;
	struct tpcset tpcs;    /* that its kernels may use there; never none, and all bits where that is not known */
	uint32_t priority;     /* 0 … 99 */
	uint32_t weight;       /* 1 … 10000 */
	bool wants;            /* to run on this GPU: it has work in flight there, at the moment of its look */
	bool is_aside;         /* it is put aside just now: it takes none of the GPU's time */
	bool is_client;        /* of MPS */
	uint64_t wants_since;  /* since when each of its looks has seen so; 0 while it does not want */
	uint64_t served_ns;    /* its share of the time until now, by weight (shim/weight.h) */
	uint64_t said;         /* when this was written */
};

/* Takes part: on the user's board that is found first, or else a new one. Looks at all processes, which takes
 * milliseconds. -1 with the reason: if that may pass, board_look tries again. Does nothing if it is joined. */
int board_join(struct error *error);

/* Looks for a board that comes first, and goes there; if the program has closed the descriptor of this one, to any.
 * At some processes each time, so that it takes less than a millisecond on the average. Returns false when it has
 * looked at all; the next call then begins anew. */
bool board_look(void);

/* Leaves it: its places are free, and it is closed. May be repeated. */
void board_leave(void);
bool board_is_joined(void);

/* Writes this process's claim for the GPU that it names; a place is taken at the first time. False if all are taken;
 * that is not tried more often than ten times a second of `said`. */
bool board_claim(const struct board_claim *claim);

/* This process is on that GPU no more. */
void board_retract(struct pci_address pci);

/* Copies the claims of the other processes on a GPU that are alive; returns how many. Those that want are fresh: of
 * who has said nothing for longer, it is not known. Claims that were being written meanwhile are the ones from
 * before, or left out. No system call. */
unsigned int board_read(struct pci_address pci, uint64_t now, struct board_claim claims[BOARD_PLACES]);

/* In the child of a fork: it is on no board. */
void board_after_fork(void);

#endif
