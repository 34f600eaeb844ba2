/*
 * The clock of launches: CLOCK_MONOTONIC, in ns. Containers may have a time namespace, in which it shows another time, so
 * what a process writes must be read by that process's clock.
 */
#ifndef NVTASKSET_PROCESS_CLOCK_H
#define NVTASKSET_PROCESS_CLOCK_H

#include <stdint.h>
#include <sys/types.h>

/* This process's. Makes no system call where the C library reads the clock by itself. */
uint64_t process_clock_ns(void);

/* What must be added to this process's clock for that of process `pid`. 0 if it is not known. */
int64_t process_clock_offset(pid_t pid);

#endif
