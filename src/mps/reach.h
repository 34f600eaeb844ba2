/* Whether a process may be a client of MPS, without asking any process. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/* A control daemon has pipes where this process's driver looks for the pipes. May be wrong about a program older than
 * the daemon, but never misses a client of a living daemon. */
bool mps_is_in_reach(void);

/* In a container, by nvtaskset cdi: the pipes of the daemon. */
#define MPS_MOUNT "/opt/nvtaskset/mps"

/* The same for another process, by the environment at its start. A container with MPS_MOUNT has a daemon. False for an
 * unreadable environment. */
bool mps_reaches(pid_t pid);

/* The number of a process's connections as a client of MPS; 0 if unknown, or without MPS. */
unsigned int mps_connections(pid_t pid);
