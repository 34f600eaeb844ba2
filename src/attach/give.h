/*
 * Gives a process a segment, by a few system calls of a borrowed thread: no library is loaded.
 *
 * Its descriptor gets a number below the inherited one's, so that it is found first. That one stays: another thread of the
 * process may close it just now, and have a file of its own there.
 */
#ifndef NVTASKSET_ATTACH_GIVE_H
#define NVTASKSET_ATTACH_GIVE_H

#include "attach/loan.h"
#include "base/error.h"
#include "state/layout.h"

struct segment_gift {
	int inherited; /* the descriptor of the segment that the process shares */
	struct {
		char name[sizeof SEGMENT_NAME];
		char path[32]; /* of its own file, once that is there */
		struct segment_memory content;
	} room;
};

/* With the revision that the process shares now. -1 with the reason where it shares none, or its limits leave no room. */
int segment_prepare_gift(struct segment_gift *gift, pid_t pid, struct error *error);

/* -1 with the reason; the process has no more than it had. */
int segment_give(const struct segment_gift *gift, struct loan *loan);

#endif
