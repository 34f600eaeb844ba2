/*
 * Gives a process a segment, by a few system calls of a borrowed thread. No library is loaded.
 *
 * The new handle gets a number below the inherited handle, to be found first. The inherited handle stays open: another
 * thread of the process may be closing it, and the number may then belong to a file of the program's.
 */
#ifndef NVTASKSET_ATTACH_GIVE_H
#define NVTASKSET_ATTACH_GIVE_H

#include "attach/borrowed_thread.h"
#include "base/error.h"
#include "state/segment/layout.h"

struct segment_gift {
	int inherited; /* the descriptor of the shared segment */
	struct {
		char name[sizeof SEGMENT_NAME];
		char path[32]; /* /proc/self/fd/N of the new file, once the file exists */
		struct segment_memory content;
	} room;
};

/* Copies the revision shared by the process now. -1 with the reason: nothing is shared, or the limits leave no room. */
int segment_prepare_gift(struct segment_gift *gift, pid_t pid, struct error *error);

/* -1 with the reason; the process then has no new descriptor or memory. */
int segment_give(const struct segment_gift *gift, struct borrowed_thread *borrowed);

#endif
