/*
 * Turns to select TPCs (-n), or to join a group (--group). Of the processes that see each other in /proc, one selects
 * at a time.
 *
 * Each process has a ticket (Lamport's bakery algorithm): a memfd that all processes find through /proc. So there is no
 * name that another program could take first, nothing is left behind, and network namespaces do not matter. The ticket
 * ends with its process. Tickets of other users are ignored: no user can block another.
 */
#ifndef NVTASKSET_SELECT_TURN_H
#define NVTASKSET_SELECT_TURN_H

#include "base/error.h"

/* Waits for the turn of this process, which lasts until the end or exec of the process. Does nothing if the turn has
 * come before. -1 with the reason if another process does not finish its turn. The reason names the option that needs
 * the turn, and the remedy `instead`. */
int turn_wait(const char *option, const char *instead, struct error *error);

#endif
