/* What of a GPU may be chosen. */
#ifndef NVTASKSET_SELECT_LIMITS_H
#define NVTASKSET_SELECT_LIMITS_H

struct group;
struct pids;
struct segment_revision;

/* All NULL: everything. */
struct set_limits {
	const struct pids *except;             /* the TPCs of these processes count as free (-n) */
	const struct group *group;             /* and those of the processes of this group that have all of its partition */
	const struct segment_revision *taken;  /* these do not, although no process may have them (-n) */
	const struct segment_revision *room;   /* so much there is of the GPUs that it names, instead of the whole GPU */
};

#endif
