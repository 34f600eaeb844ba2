/* Fields of /proc/PID/status, of a process or a thread. Allocates nothing. */
#ifndef NVTASKSET_PROC_STATUS_H
#define NVTASKSET_PROC_STATUS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* The last number on the line that begins with `field`, such as "NSpid:"; `unknown` if there is none. `process` is a
 * number, or "self". */
uint64_t proc_status(const char *process, const char *field, uint64_t unknown);
uint64_t proc_status_of(pid_t pid, const char *field, uint64_t unknown);

/* Whether that line contains the text. */
bool proc_status_has(pid_t pid, const char *field, const char *text);

#endif
