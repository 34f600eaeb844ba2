/* Finding the segment of another process. The process may be hostile, and the process's open files too. */
#pragma once

#include "segment.h"
#include "state/group/find.h"

/* Opens and maps the segment of process `pid`, not a foreign segment that the process has open. SEGMENT_FOUND, and the
 * caller closes the segment; otherwise the state and the reason, to which callers add nothing. Without `error`,
 * the search is short: the state is SEGMENT_NOT_READY or SEGMENT_NOT_OURS without the reason. The short search misses a
 * segment whose process might open at most HANDLE_USUAL files when making the segment, and may open more now. `purse`
 * pays for the looks (base/purse.h), and as long as the caller leaves the purse in `segment`, also for later looks. */
enum segment_state segment_open(struct segment *segment, pid_t pid, struct purse *purse, struct error *error);

/* Whether the short search finds a segment. */
bool segment_exists(pid_t pid);

/* Opens the segment that a process shares with an ancestor, perhaps ended. `number` gets the process's descriptor.
 * `use`: of the group. */
bool segment_open_inherited(struct segment *segment, pid_t pid, int *number, enum group_use use,
                            struct purse *purse);

/* Whether nvtaskset started the process, directly or not: the process has a segment as soon as it uses CUDA. */
bool segment_is_expected(pid_t pid, struct purse *purse);

/* Why a process that may be inspected has no segment: SEGMENT_NO_CUDA, _NOT_OURS, _NOT_IN_FORCE or _CLOSED; and the
 * text for the state. */
enum segment_state segment_absence(pid_t pid, struct purse *purse);
const char *segment_absence_text(enum segment_state state);

/* Reads the revision in force from the memory of a process that has closed the file. SEGMENT_FOUND; _NOT_OURS without a
 * segment; _NOT_PERMITTED if the kernel does not let the caller read. */
enum segment_state segment_read_mapped(pid_t pid, struct segment_revision *revision);

/* Opens the group of a process for changing, by the process's own segment or by an ancestor's. False without a group,
 * or if the group is out of reach, or if the segment's file belongs neither to this user nor to the group's owner: any
 * user may claim to be in root's group. */
bool segment_open_group_of(pid_t pid, struct group *group);

/* Whether our library is at work in the current execution of process `pid`, the owner. */
bool segment_is_at_work(const struct segment *segment, pid_t pid);

/* Why a process that uses CUDA does not obey; NULL if the process obeys, or does not use CUDA yet. */
const char *segment_obstacle(const struct segment *segment, pid_t pid);
