/* /proc/PID/stat, in which the kernel says numbers of a process. No allocation. */
#ifndef NVTASKSET_PROC_STAT_H
#define NVTASKSET_PROC_STAT_H

#include <stdint.h>
#include <sys/types.h>

#define PROC_STAT_TEXT 2048 /* some 50 numbers of 20 digits at most, and a name of 64 */

/* As text, by one call of the system; "" where there is none. */
void proc_stat_read(pid_t pid, char text[PROC_STAT_TEXT]);

/* What it is doing: a letter, 'T' where it is stopped; '\0' where there is none. */
char proc_stat_state(const char *text);

/* A number (proc(5) has them from 1 on), behind a name that may hold anything; 0 where there is none. */
uint64_t proc_stat_field(const char *text, int number);

#endif
