/*
 * The board: where programs of one user that were given a priority or a weight find each other.
 *
 * Where it lies. In a memfd that each of them holds open. Nobody else keeps it, so it is gone with the last of them,
 * and nothing is left behind. Who comes looks for it through /proc; who finds none makes one. Two that come at the same
 * time make two: each looks again from time to time, and goes to the one that comes first in an order that all see
 * alike. Those who cannot see each other, of other users or in other PID namespaces, do not know each other.
 *
 * What stands there. A place for each process and GPU, which only its owner writes, as a whole:
 * its rank, its TPCs, and where others read what it has in flight (state/kernels/counts_read.h). Demand itself does not
 * stand there. The owner is a pid with a start time in a PID namespace, never a lock: readers see to it that it lives.
 * A place whose owner has gone is freed by whoever finds it; that of an owner in another namespace is free for the next
 * one after BOARD_LAPSE_NS.
 *
 * Who may what. The kernel decides: the user and root may open it, and root's programs
 * go to root's. A hostile program of the same user can write
 * anything: readers check what they copy, an owner's next writing puts its own place right, and the bounds of the rules hold
 * for what others claim (time/rules/rules.h). It is sealed against changes of its size.
 *
 * Times are process_clock_ns's. In no launch. One thread at a time for all
 * of these. errno is preserved.
 */
#ifndef NVTASKSET_STATE_BOARD_BOARD_H
#define NVTASKSET_STATE_BOARD_BOARD_H

#include "base/error.h"
#include "gpu/pci_address.h"
#include "gpu/tpcset.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define BOARD_PLACES 512

#define BOARD_LAPSE_NS UINT64_C(10000000000)

/* What a process claims on one GPU. */
struct board_claim {
	struct pci_address pci;
	struct tpcset tpcs;    /* that its kernels may use there; never none, and all bits where that is not known */
	uint32_t priority;     /* 0 … 99 */
	uint32_t weight;       /* 1 … 10000 */
	uint32_t lend_us;      /* others may have these TPCs, and it may have to wait so long for them; 0: they may not */
	uint8_t is_suspended;  /* just now it takes none of the GPU's time; no bool, since others may write anything */
	uint8_t is_client;     /* of MPS */
	uint8_t is_borrower;   /* it may use what others lend */
	uint8_t pauses;        /* it pauses now and then, as it sees itself: by that, it decides for how long it runs at once */
	uint64_t group;        /* whose share of the time it has part in; its own number where that is its alone */
	uint64_t served_ns;    /* this share until now, by weight (time/rules/weight.h) */
	uint64_t segment;      /* its descriptor of its segment, */
	uint64_t inode;        /* and the inode number of that file; 0: others cannot read its demand */
	uint64_t written;      /* at this time */
};

/* Takes part: on the user's board that is found first, or else a new one. Looks at all processes, which takes
 * milliseconds. -1 with the reason: if that may pass, board_look tries again. Does nothing if it is joined. */
int board_join(struct error *error);

/* Now and then looks for a board that comes first, and goes there; if the program has closed the descriptor of the
 * board, to any. At some processes each time, so that a call takes less than a millisecond on the average. Returns
 * whether there are more processes to look at now. */
bool board_look(uint64_t now);

/* Leaves it: its places are free, and it is closed. May be repeated. */
void board_leave(void);

/* Writes this process's claim for the GPU that it names; a place is taken at the first time. False if all are taken;
 * that is not tried more often than ten times a second of `written`. */
bool board_claim(const struct board_claim *claim);

/* Whether others see each claim of this process: not where the board has no place left. */
bool board_has_room(void);

/* Copies the claims of the other processes of this PID namespace on a GPU; returns how many. Their owners may have died.
 * Claims that were being written meanwhile are the ones from before, or left out. No system call. */
struct board_peer {
	pid_t pid;
	uint64_t start; /* in clock ticks since the machine started */
	unsigned int place;
	struct board_claim claim;
};
unsigned int board_read(struct pci_address pci, struct board_peer peers[BOARD_PLACES]);

/* Whether the process is there, and neither a zombie nor stopped; or this process's own limits keep it from being seen. One system call or two. */
bool board_is_alive(pid_t pid, uint64_t start);

/* Frees the peer's place if the process has gone; not where it is stopped, or was executed anew. Of several that do this, and of
 * owners that take the place meanwhile, none is harmed. */
void board_bury(const struct board_peer *peer);

/* In the child of a fork: it is on no board. */
void board_after_fork(void);

#endif
