/*
 * Finding the segment of another process. The process may be hostile, and so may its open files.
 */
#ifndef NVTASKSET_STATE_SEGMENT_FIND_H
#define NVTASKSET_STATE_SEGMENT_FIND_H

#include "segment.h"
#include "state/group/find.h"

/* Opens and maps the segment of process `pid`, and not another's segment that it has open. SEGMENT_FOUND, and the
 * caller closes it; otherwise the state and the reason, which is all that follows "nvtaskset: ". Without `error`, the
 * reason, which takes long to find, is not looked for: the state of any process without a segment is SEGMENT_NOT_READY
 * or SEGMENT_NOT_OURS.
 * It is also SEGMENT_NOT_OURS for a process that could open at most HANDLE_USUAL files when it made its segment, and
 * may open more now. */
enum segment_state segment_open(struct segment *segment, pid_t pid, struct error *error);

/* Opens the segment that a process shares with an ancestor, which may have ended. `number` gets the process's
 * descriptor. `use`: of its group. */
bool segment_open_inherited(struct segment *segment, pid_t pid, int *number, enum group_use use);

/* Whether a process was started by nvtaskset, directly or not: it has a segment as soon as it uses CUDA. */
bool segment_is_expected(pid_t pid);

/* Why a process that may be inspected has no segment: SEGMENT_NO_CUDA, _NOT_OURS, _NOT_IN_FORCE or _CLOSED; and the
 * text for that. */
enum segment_state segment_absence(pid_t pid);
const char *segment_absence_text(enum segment_state state);

/* Reads the revision in force from the memory of a process that has closed the file. SEGMENT_FOUND; _NOT_OURS if it has
 * none; _NOT_PERMITTED if the kernel does not let this process read it. */
enum segment_state segment_read_mapped(pid_t pid, struct segment_revision *revision);

/* Opens the group of a process, for changing: of its own segment, or of the one that it shares with an ancestor. False if it
 * is in none, or that cannot be reached; or if it is not the group of this user, or of the process's: anybody may say that he is
 * in root's. */
bool segment_open_group_of(pid_t pid, struct group *group);

/* Whether our library is at work in the current execution of process `pid`, the owner. */
bool segment_is_at_work(const struct segment *segment, pid_t pid);

/* Why the process does not obey although it uses CUDA; NULL if it obeys, or does not use CUDA yet. */
const char *segment_obstacle(const struct segment *segment, pid_t pid);

#endif
