/* /proc/PID/status, in which the kernel says of a process, or a thread, what each line names. No allocation. */
#ifndef NVTASKSET_PROC_STATUS_H
#define NVTASKSET_PROC_STATUS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* The last number on the line that begins with `field`, "NSpid:" say; `unknown` where the kernel does not say. `process`
 * is a number, or "self". */
uint64_t proc_status(const char *process, const char *field, uint64_t unknown);
uint64_t proc_status_of(pid_t pid, const char *field, uint64_t unknown);

/* Whether the line says this. */
bool proc_status_has(pid_t pid, const char *field, const char *text);

#endif
