/*
 * The limits of GPU memory for a process, and how much the process has of each GPU (state/ledger.h;
 * src/memory/memory.h explains the whole).
 *
 * Two limits may hold: a group's, for all members together, and the process's own. A process with a limit of its own
 * obeys the group's as well only where the group is a file, which fences.
 */
#pragma once

#include "gpu/topology/topology.h"
#include "segment.h"

/* In bytes of each GPU; SEGMENT_MEMORY_OFF: none. */
struct segment_memory_limits {
	uint64_t own, together;
};

/* False if the segment or the group cannot be read. `number`: of the revision with the limits. */
bool segment_read_memory_limits(const struct segment *segment, struct segment_memory_limits *limits, uint64_t *number);

/* In bytes: the smaller limit, 0 without one; the use of a GPU by the process, and by all members of the ledger. The
 * process, which may be hostile, and the members can write all these numbers. */
struct segment_memory_use {
	uint64_t limit, used, together;
	bool has_gap; /* memory from before the library came is not counted */
};
#define SEGMENT_MEMORY_GAP \
	"what it had allocated before it was attached to is not counted: the kernel driver does not tell"

/* The owner has memory that is not counted. */
void segment_set_memory_gap(const struct segment *segment);

struct segment_memory_use segment_read_memory_use(const struct segment *segment, struct pci_address pci);

/* Raises each `used` to the kernel driver's count of the process, if the kernel driver tells: a process without a limit
 * leaves out the driver's own memory (memory/kinds.h). One question, for up to TOPOLOGY_USERS_MAX processes. */
struct segment_memory_user {
	pid_t pid;
	struct segment_memory_use *use;
};
void segment_ask_memory_use(struct pci_address pci, const struct segment_memory_user *users, unsigned int count);

/* The same of a group; `used` is 0. */
struct segment_memory_use segment_read_memory_use_of_group(const struct group *group, struct pci_address pci);
