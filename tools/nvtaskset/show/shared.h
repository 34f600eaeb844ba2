/*
 * TPCs that several processes have.
 */
#ifndef NVTASKSET_SHARED_H
#define NVTASKSET_SHARED_H

#include "processes.h"

/* Finds the TPCs that processes of the list share, and adds them to it. -1 with the reason if there is no memory. */
int shared_find(struct processes *processes, struct error *error);

/* Whether the process is one of those that share these TPCs. */
bool process_shares(const struct process *process, const struct shared *shared);

#endif
