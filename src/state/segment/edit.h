/*
 * Changing the partitions of running processes. Meanwhile the owner's threads and other editors continue.
 */
#ifndef NVTASKSET_STATE_SEGMENT_EDIT_H
#define NVTASKSET_STATE_SEGMENT_EDIT_H

#include "segment.h"

#include <stddef.h>

/* --- of one process, or several: the way for the command and for programs ------------------------------------------- */

/* Holds the partition of one process, wherever its segment moves to. */
struct editor {
	pid_t pid;
	int process; /* a pidfd, which no other process with the same pid can take over; -1 if the kernel has none */
	struct segment segment;
};

/* SEGMENT_FOUND, and the caller closes it; otherwise the state and the reason, like segment_open. Waits for a process
 * that is about to have a segment: one that has just started, until it is 200 ms old (3 s if it has not called exec
 * yet); one that runs the command nvtaskset, for 10 s; one that is making its segment, for 2 s. */
enum segment_state editor_open(struct editor *editor, pid_t pid, struct error *error);
void editor_close(struct editor *editor);

/* The same for what many processes do not have: without a reason, or waiting (see segment_open). */
enum segment_state editor_look(struct editor *editor, pid_t pid);

/* Whether the process has ended. False if the kernel cannot tell. */
bool editor_has_ended(const struct editor *editor);

/* After an edit of its group: the process follows at once, also an idle one. */
void editor_ring(const struct editor *editor);

/* Finds the segment again if the process has moved it to a new file. -1 with the reason if the process has ended, or
 * the new segment cannot be opened. */
int editor_follow(struct editor *editor, struct error *error);

/* Copies the revision in force. */
int editor_read(struct editor *editor, struct segment_revision *revision, struct error *error);

/* Gives each of these processes the wanted partitions; GPUs that they do not name stay as they are. One after the other: each is
 * changed or not, whoever is killed meanwhile. If one cannot be changed, those that were changed before get their old partitions
 * again: then -1 with the reason. EDITOR_SOME if that fails for some: the reason says how many. If there are several processes,
 * those that have ended are skipped. */
#define EDITOR_SOME (-2)
int editor_change(struct editor *editors, size_t count, const struct segment_revision *wanted, struct error *error);

/* --- one segment ----------------------------------------------------------------------------------------------------- */

/* Replaces what `wanted` gives, partitions and of the time, by one new revision; the rest stays. The next launch obeys. Waits a bounded
 * time while another editor writes. -1 with the reason, and nothing changed, if there is no room for one more GPU, the
 * lock cannot be had, or the segment is damaged. Also -1 if the segment has moved: the edit may or may not count, and
 * must be repeated in the new file. The lock excludes editors by open file: it does not exclude two threads, or a
 * process and its fork, that share one struct segment. `before` gets the revision that was in force, and may be NULL.
 * Editors should use an editor, which repeats the edit if needed. */
int segment_change(struct segment *segment, const struct segment_revision *wanted, struct segment_revision *before,
                   struct error *error);

/* Takes an edit back, by what the edit gave: what has been edited since stays (segment_put_back). */
int segment_take_back(struct segment *segment, const struct segment_revision *given, struct segment_revision *before,
                      struct error *error);

/* The same as both, wherever the segment has moved to. */
int editor_change_one(struct editor *editor, const struct segment_revision *wanted, struct segment_revision *before,
                      struct error *error);
int editor_take_back(struct editor *editor, const struct segment_revision *given, struct segment_revision *before,
                     struct error *error);

/* Raises the number, and nothing else changes: the next launch of each thread, and of each graph, is decided anew. -1 as
 * for segment_change. */
int segment_raise(struct segment *segment, struct error *error);

/* Whether the owner has moved to a new file (segment_keep_findable): editors must open the segment again. */
bool segment_has_moved(const struct segment *segment);

#endif
