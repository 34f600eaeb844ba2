/*
 * Which execution of a program a process is in: from one exec to the next its number stays the same.
 *
 * It is made of the addresses at which the kernel has put the program's parts, which it chooses anew at each exec. Where it
 * may not choose (setarch -R), the same program executed again with the same arguments has the same number.
 */
#ifndef NVTASKSET_EXECUTION_H
#define NVTASKSET_EXECUTION_H

#include <stdint.h>
#include <sys/types.h>

/* Never 0. Without /proc. */
uint64_t execution_own(void);

/* Another process's; 0 where it has ended or may not be looked into. */
uint64_t execution_of(pid_t pid);

#endif
