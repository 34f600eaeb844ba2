/*
 * The board: where programs of one user with a priority or a weight find each other.
 *
 * Place. A board lies in a memfd held open by the members, and is gone with the last member. A new member looks for a
 * board through /proc, and makes a board if there is none. Two members that come at the same time make two boards. Each
 * member looks again from time to time, and goes to the board that is first in an order common to all members.
 * Processes of different users have separate boards. A process that sees an inner PID namespace may share a board with
 * the processes there, but a reader skips claims from a foreign namespace.
 *
 * Content. A place for each process and GPU, written as a whole by the owner alone: the owner's rank, TPCs, and where
 * readers find the number of kernels in flight (state/kernels/counts_read.h). Demand itself is not on the board. The
 * owner is a pid with a start time in a PID namespace, never a lock: readers check that the owner lives. A reader that
 * finds a place of a dead owner frees the place. The place of an owner in another namespace is free after
 * BOARD_LAPSE_NS.
 *
 * Rights. The kernel decides: the user and root may open a board, and root's programs go to root's board. A hostile
 * program of the same user can write anything: readers check all copies, the next write of an owner repairs the owner's
 * place, and the bounds of the rules hold for foreign claims (time/rules/rules.h). Seals forbid changes of the size.
 *
 * Times are process_clock_ns's. No function is for the launch path. One thread at a time calls these functions. errno
 * is preserved.
 */
#pragma once

#include "base/error.h"
#include "gpu/pci_address.h"
#include "gpu/tpcset.h"

#include <sys/types.h>

#define BOARD_PLACES 512

#define BOARD_LAPSE_NS UINT64_C(10000000000)

/* What a process claims on one GPU. */
struct board_claim {
	struct pci_address pci;
	struct tpcset tpcs;    /* for the owner's kernels; never none; all bits if the TPCs are unknown */
	uint32_t priority;     /* 0 … 99 */
	uint32_t weight;       /* 1 … 10000 */
	uint32_t lend_us;      /* the longest wait of the owner for TPCs lent to other processes; 0: no lending */
	uint8_t is_suspended;  /* takes no GPU time now; no bool, because a hostile program may write any value */
	uint8_t is_client;     /* of MPS */
	uint8_t is_borrower;   /* may use lent TPCs */
	uint8_t pauses;        /* pauses now and then, as the owner has measured: bounds the owner's turns */
	uint64_t group;        /* the group with a common share of the time, or else the process's own number */
	uint64_t served_ns;    /* the share until now, by weight (time/rules/weight.h) */
	uint64_t segment;      /* the owner's descriptor of the owner's segment */
	uint64_t inode;        /* of the segment's file; 0: no other process can read the demand */
	uint64_t written;      /* the time of the write */
};

/* Takes part: on the user's first board, or on a new board. Looks at all processes, for milliseconds. -1 with the
 * reason: if the reason may pass, board_look tries again. No effect if the process is joined. */
int board_join(struct error *error);

/* Now and then looks for a board with a lower number, and goes there; to any board if the program has closed the
 * descriptor of the current board. Looks at some processes in each call, for less than a millisecond on average. Returns
 * whether there are more processes to look at now. */
bool board_look(uint64_t now);

/* Leaves the board: frees the process's places, and closes the board. May be repeated. */
void board_leave(void);

/* Writes the process's claim for the claim's GPU; the first call takes a place. False if all places are taken; then the
 * next attempt comes after 100 ms of `written` at the earliest. */
bool board_claim(const struct board_claim *claim);

/* False if a claim of the process found no free place. */
bool board_has_room(void);

/* Copies the claims of the other processes of this PID namespace on a GPU, and returns the number of claims. The owners
 * may have died. A claim that changes meanwhile is left out, or the copy has the claim before. No system call. */
struct board_peer {
	pid_t pid;
	uint64_t start; /* in clock ticks since the machine started */
	unsigned int place;
	struct board_claim claim;
};
unsigned int board_read(struct pci_address pci, struct board_peer peers[BOARD_PLACES]);

/* Whether the process exists, neither a zombie nor stopped; true also where the caller's own limits hide the process.
 * One or two system calls. */
bool board_is_alive(pid_t pid, uint64_t start);

/* Frees the peer's place if the process has gone; no effect if the process is stopped, or executes another program.
 * Several processes may bury the same peer at once, and a new owner may take the place meanwhile. */
void board_bury(const struct board_peer *peer);

/* In the child of a fork: the child is on no board. */
void board_after_fork(void);
