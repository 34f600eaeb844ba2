/*
 * Whose turn it is to choose TPCs (-n): one at a time of those who can see each other in /proc.
 *
 * Each has a ticket, a file in memory that the others find there (Lamport's bakery): no name that somebody could take
 * before, nothing that is left behind, and other namespaces of the network do not matter. Who ends has no ticket any more.
 * Tickets of other users do not count, so they hold nobody up.
 */
#ifndef NVTASKSET_TURN_H
#define NVTASKSET_TURN_H

#include "base/error.h"

/* Waits for this process's turn, which lasts until it ends or becomes another program. -1 with the reason where others do
 * not finish. Once a process. */
int turn_wait(struct error *error);

#endif
