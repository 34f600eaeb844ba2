/*
 * Which numbers our descriptors get in programs, which count on the low ones being free.
 */
#ifndef NVTASKSET_DESCRIPTOR_H
#define NVTASKSET_DESCRIPTOR_H

#include <stdint.h>

#define DESCRIPTOR_TABLE_MIN 64 /* the kernel's smallest table of descriptors, NR_OPEN_DEFAULT */
#define DESCRIPTOR_TABLE_END 16

/* The lowest number to ask for: `usual`, far up, where nobody looks for one. But to make the table of descriptors larger, the
 * kernel makes a process with threads wait for all processors, 5 to 30 ms (Linux 6.18, expand_fdtable in fs/file.c): in a
 * table of so many ("FDSize:" in /proc/PID/status; 0: it may grow), its end will do. */
int descriptor_lowest(uint64_t table, int usual);

#endif
