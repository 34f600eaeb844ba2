/* Numbers of a process, from /proc/PID/stat. Allocates nothing. */
#ifndef NVTASKSET_PROC_STAT_H
#define NVTASKSET_PROC_STAT_H

#include <stdint.h>
#include <sys/types.h>

#define PROC_STAT_TEXT 2048 /* some 50 numbers of 20 digits at most, and a name of 64 */

/* Reads the file by one system call; "" if there is none. */
void proc_stat_read(pid_t pid, char text[PROC_STAT_TEXT]);

/* The process's state, a letter, such as 'T' if it is stopped; '\0' if there is none. */
char proc_stat_state(const char *text);

/* The field of this number (proc(5) counts from 1), from 4 on; 0 if there is none. The process's name may contain
 * anything. */
uint64_t proc_stat_field(const char *text, int number);

#endif
