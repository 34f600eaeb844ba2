/* Which process started which. */
#ifndef NVTASKSET_PARENT_H
#define NVTASKSET_PARENT_H

#include <sys/types.h>

/* A tree of processes is not deeper, and numbers of another PID namespace may lead in a circle. */
#define PARENT_GENERATIONS 64

/* The process that `pid` is a child of; 0 where there is none, it has ended, or /proc is not there. No allocation. */
pid_t parent_of(pid_t pid);

#endif
