/*
 * The limits of GPU memory that hold for a process, and what it has of each GPU (state/ledger.h; src/memory/memory.h
 * has the whole).
 *
 * Two limits may hold: a group's, for all its members together; and another one that the process was given, for itself
 * alone. Beside that one the group's holds only where the group is a file, which fences.
 */
#ifndef NVTASKSET_STATE_SEGMENT_MEMORY_H
#define NVTASKSET_STATE_SEGMENT_MEMORY_H

#include "segment.h"

/* In bytes of each GPU; SEGMENT_MEMORY_OFF: none. */
struct segment_memory_limits {
	uint64_t own, together;
};

/* False if the segment or the group cannot be read. `number`: of the revision that says so. */
bool segment_read_memory_limits(const struct segment *segment, struct segment_memory_limits *limits, uint64_t *number);

/* In bytes: the smaller one of the limits, 0 if there is none; what the process has of a GPU; and what all have on
 * whose ledger it is. The process, which may be hostile, and the other members have these numbers in their memory. */
struct segment_memory_use {
	uint64_t limit, used, together;
	bool has_gap; /* what the process had before the library came is not counted */
};
#define SEGMENT_MEMORY_GAP \
	"what it had allocated before it was attached to is not counted: the kernel driver does not tell"

/* The owner has such memory. */
void segment_set_memory_gap(const struct segment *segment);

struct segment_memory_use segment_read_memory_use(const struct segment *segment, struct pci_address pci);

/* The same of a group; `used` is 0. */
struct segment_memory_use group_read_memory_use(const struct group *group, struct pci_address pci);

#endif
