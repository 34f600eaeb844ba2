/*
 * The owner's side of a segment, in other people's processes: getting it, and keeping it findable.
 */
#ifndef NVTASKSET_STATE_SEGMENT_OWNER_H
#define NVTASKSET_STATE_SEGMENT_OWNER_H

#include "segment.h"

/* Makes a segment for this process, with `revision` in force as number 1. It takes over `group`, if it was made; NULL, or one
 * without memory: none. `descriptor` is the one that names the group (group_keep). Its handle (state/handle.h) atomically
 * replaces the handle `in_place_of`: -1 for none; SEGMENT_OF_BEFORE for that of the segment that this process has: its own,
 * which is then marked as moved for its editors, or an ancestor's. -1 with the reason if the kernel refuses, or a limit of the
 * process is too low. */
#define SEGMENT_OF_BEFORE (-2)
int segment_create(struct segment *segment, const struct segment_revision *revision, struct group *group, int descriptor,
                   int in_place_of, struct error *error);

/* Makes a segment in private memory, if segment_create fails: the process obeys it, and nobody can change it. */
int segment_create_private(struct segment *segment, const struct segment_revision *revision, struct error *error);

/* Fills in a new segment of `owner`, in memory that is not shared yet. */
void segment_prepare(struct segment_memory *memory, struct identity owner, const struct segment_revision *revision);

/* Finds the segment that this process already has: from before its exec, or made by another copy of the library, in
 * another namespace of the dynamic linker, which shares it. Needs /proc. */
bool segment_find_own(struct segment *segment);

/* The segments that a process may have among its descriptors, the best first. */
enum segment_source {
	SEGMENT_OWN,
	SEGMENT_INHERITED, /* from an ancestor, which may have ended, or from itself when it was another user's */
	SEGMENT_LEFT,      /* inherited, and its owner has gone on with a new one */
	SEGMENT_WITHHELD,  /* it cannot be opened: there is no /proc */
	SEGMENT_NONE
};

/* Opens this process's best segment, unless it is withheld; the caller closes it. `handle` gets its handle's number, or
 * -1. */
enum segment_source segment_open_source(struct segment *segment, int *handle);

/* Notes that the library is at work in this execution of the process. */
void segment_set_at_work(const struct segment *segment);

/* Notes whether the process obeys; a new segment says that it does. */
void segment_set_in_force(const struct segment *segment, bool in_force);

/* Whether its handle is still open: a program may close descriptors that it did not open, or reuse the number. */
bool segment_is_findable(const struct segment *segment);

/* Makes sure that editors find the segment, also after the program has closed its handle. The content then moves to a
 * new file, which is mapped in place of the old one while other threads launch. A few launches at that moment are not
 * counted, and editors that have the old file open learn of it at their next edit. -1 with the reason if the kernel
 * refuses; the segment is then unchanged. One call at a time. */
int segment_keep_findable(struct segment *segment, struct error *error);

#endif
