/* The part of a GPU that may be chosen. */
#ifndef NVTASKSET_SELECT_LIMITS_H
#define NVTASKSET_SELECT_LIMITS_H

#include <stdbool.h>

struct group;
struct pids;
struct segment_revision;

/* All 0: everything. */
struct set_limits {
	const struct pids *except;             /* processes whose TPCs count as free (-n) */
	const struct group *group;             /* likewise members with all of the group's partition */
	const struct segment_revision *taken;  /* TPCs that count as taken, even without a process (-n) */
	const struct segment_revision *room;   /* the TPCs of the GPUs in `room`; of any other GPU, all */
	bool is_dry_run;                       /* the choice (-n) is free for the next command, too */
};

#endif
