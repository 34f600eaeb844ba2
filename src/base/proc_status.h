/* What the kernel says of a process in /proc/PID/status. No allocation. */
#ifndef NVTASKSET_PROC_STATUS_H
#define NVTASKSET_PROC_STATUS_H

#include <stdint.h>

/* The last number on the line that begins with `field`, "NSpid:" say; `unknown` where the kernel does not say. `process`
 * is a number, or "self". */
uint64_t proc_status(const char *process, const char *field, uint64_t unknown);

#endif
