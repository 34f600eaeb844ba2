/* The owner's side of a segment, in foreign programs: getting the segment, and keeping the segment findable. */
#pragma once

#include "segment.h"

/* Makes a segment for this process, with `revision` in force as number 1. On success, takes `group` over; NULL, or a
 * group without memory: no group. `descriptor` names the group (group_keep). The handle of the segment (state/handle.h)
 * atomically replaces the handle `in_place_of`: -1 for none; SEGMENT_OF_BEFORE for the process's present segment,
 * either an ancestor's or the process's own, which is then marked as moved for editors. -1 with the reason if the
 * kernel refuses, or a limit of the process is too low. */
#define SEGMENT_OF_BEFORE (-2)
int segment_create(struct segment *segment, const struct segment_revision *revision, struct group *group,
                   int descriptor, int in_place_of, struct error *error);

/* Makes a segment in private memory, after segment_create failed: the process obeys, and no editor can edit. */
int segment_create_private(struct segment *segment, const struct segment_revision *revision, struct error *error);

/* Fills in a new segment of `owner`, in memory that is not shared yet. */
void segment_prepare(struct segment_memory *memory, struct identity owner, const struct segment_revision *revision);

/* Finds the existing segment of this process: from before the exec, or made and shared by another copy of the library
 * in another namespace of the dynamic linker. Needs /proc. */
bool segment_find_own(struct segment *segment);

/* The segments that a process may have among its descriptors, the best first. */
enum segment_source {
	SEGMENT_OWN,
	SEGMENT_INHERITED, /* from an ancestor, perhaps ended, or from the process itself as another user */
	SEGMENT_LEFT,      /* inherited; the owner has gone on with a new segment */
	SEGMENT_WITHHELD,  /* cannot be opened: there is no /proc */
	SEGMENT_NONE
};

/* Opens this process's best segment, unless withheld; the caller closes the segment. `handle` gets the number of the
 * handle, or -1. */
enum segment_source segment_open_source(struct segment *segment, int *handle);

/* Notes that the library is at work in this execution of the process. */
void segment_set_at_work(const struct segment *segment);

/* Notes whether the process obeys; a new segment says yes. */
void segment_set_in_force(const struct segment *segment, bool in_force);

/* Whether the handle is still open: a program may close foreign descriptors, or reuse the number. */
bool segment_is_findable(const struct segment *segment);

/* Makes sure that editors find the segment, also after the program has closed the handle. The content then moves to a
 * new file, mapped in place of the old file while other threads launch. A few launches at that moment are not counted.
 * Editors with the old file open learn of the move at the next edit. -1 with the reason if the kernel refuses; the
 * segment is then unchanged. One call at a time. */
int segment_keep_findable(struct segment *segment, struct error *error);
