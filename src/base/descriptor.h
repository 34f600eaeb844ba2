/*
 * The numbers that our descriptors get in programs, which count on the low ones being free.
 */
#ifndef NVTASKSET_DESCRIPTOR_H
#define NVTASKSET_DESCRIPTOR_H

#include <stdint.h>

#define DESCRIPTOR_TABLE_MIN 64 /* the kernel's smallest table of descriptors, NR_OPEN_DEFAULT */
#define DESCRIPTOR_TABLE_END 16

/* The lowest number to ask for: `usual`, a high number that nobody else uses. But if the process has threads, the
 * kernel enlarges a table of descriptors only after waiting for all processors (hardware.md, "Attaching"). So for
 * a table of `table` entries ("FDSize:" in /proc/PID/status; 0: it may grow), a number near its end is returned
 * instead. */
int descriptor_lowest(uint64_t table, int usual);

#endif
