/*
 * A number for a process's current execution of a program: it changes at each exec.
 *
 * It is made of the addresses of the program's parts, which the kernel chooses anew at each exec. If the kernel may
 * not choose (setarch -R), the same program executed again with the same arguments has the same number.
 */
#ifndef NVTASKSET_EXECUTION_H
#define NVTASKSET_EXECUTION_H

#include <stdint.h>
#include <sys/types.h>

/* This process's number. Never 0. Does not need /proc. */
uint64_t execution_own(void);

/* Another process's number; 0 if it has ended or may not be inspected. */
uint64_t execution_of(pid_t pid);

#endif
