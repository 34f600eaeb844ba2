/* Whether a process may be a client of MPS, without asking anybody. */
#ifndef NVTASKSET_MPS_REACH_H
#define NVTASKSET_MPS_REACH_H

#include <stdbool.h>
#include <sys/types.h>

/* A control daemon has its pipes where this process's driver looks for them. So it may be wrong about a program that is
 * older than the daemon, but never misses a client whose daemon is alive. */
bool mps_is_in_reach(void);

/* The same for another process, by the environment that it was started with. False if that cannot be read. */
bool mps_reaches(pid_t pid);

/* How many connections a process has as a client of MPS; 0 if unknown, or without MPS. */
unsigned int mps_connections(pid_t pid);

#endif
