/*
 * Whose turn it is to select TPCs (-n). Of the processes that see each other in /proc, one selects at a time.
 *
 * Each process has a ticket (Lamport's bakery algorithm): a memfd that the others find through /proc. So there is no
 * name that another program could take first, nothing is left behind, and network namespaces do not matter. The ticket
 * ends with its process. Tickets of other users are ignored, so no user can block another.
 */
#ifndef NVTASKSET_TURN_H
#define NVTASKSET_TURN_H

#include "base/error.h"

/* Waits for this process's turn, which lasts until it ends or executes another program. -1 with the reason if another
 * process does not finish its turn. To be called once in a process. */
int turn_wait(struct error *error);

#endif
