/* Which process started which. */
#ifndef NVTASKSET_PARENT_H
#define NVTASKSET_PARENT_H

#include <sys/types.h>

/* Bounds the search for ancestors: trees are not deeper, and numbers of another PID namespace may lead in a circle. */
#define PARENT_GENERATIONS 64

/* The parent of `pid`; 0 if it has none, it has ended, or /proc is not mounted. Allocates nothing. */
pid_t parent_of(pid_t pid);

#endif
