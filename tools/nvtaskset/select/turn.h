/*
 * Whose turn it is to select TPCs (-n), or to join a group (--group). Of the processes that see each other in /proc, one selects at a time.
 *
 * Each process has a ticket (Lamport's bakery algorithm): a memfd that the others find through /proc. So there is no
 * name that another program could take first, nothing is left behind, and network namespaces do not matter. The ticket
 * ends with its process. Tickets of other users are ignored, so no user can block another.
 */
#ifndef NVTASKSET_SELECT_TURN_H
#define NVTASKSET_SELECT_TURN_H

#include "base/error.h"

/* Waits for this process's turn, which lasts until it ends or executes another program. -1 with the reason if another
 * process does not finish its turn. Once it is this process's turn, does nothing. A reason
 * names the option that needs the turn, and what to do instead. */
int turn_wait(const char *option, const char *instead, struct error *error);

#endif
