/*
 * Turns to select TPCs (-n), or to join a group (--group). Of processes that see each other in /proc, one has the turn.
 *
 * Each process has a ticket (Lamport's bakery algorithm): a memfd that all processes find through /proc. No program can
 * take a name first, nothing is left behind, and network namespaces do not matter. A ticket ends with its process.
 * Tickets of other users are ignored: users cannot block each other.
 */
#pragma once

#include "base/error.h"

/* Waits for this process's turn, which lasts until the end or exec of the process. Does nothing if the turn has come.
 * -1 with the reason if a process does not finish its turn. The reason names the option that needs the turn, and the
 * remedy `instead`. */
int turn_wait(const char *option, const char *instead, struct error *error);
