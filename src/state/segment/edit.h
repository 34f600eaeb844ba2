/* Changing the partitions of running processes. The owner's threads and other editors go on meanwhile. */
#pragma once

#include "segment.h"

/* --- one process or several: for the command and for programs ----------------------------------------------------- */

/* Holds the partition of a process, also after the segment has moved. */
struct editor {
	pid_t pid;
	int process; /* a pidfd: no other process can take the pid over; -1 if the kernel has no pidfds */
	struct segment segment;
};

/* SEGMENT_FOUND, and the caller closes the editor; otherwise the state and the reason, like segment_open. Waits for a
 * process that is about to have a segment: until a new process is 200 ms old (3 s before the first exec); for 10 s if
 * the process runs the command nvtaskset; for 2 s if the process is making a segment. `purse`: as for segment_open,
 * in the editor's segment. */
enum segment_state editor_open(struct editor *editor, pid_t pid, struct purse *purse, struct error *error);
void editor_close(struct editor *editor);

/* The same without a reason and without waiting, for processes that mostly have no segment (see segment_open). */
enum segment_state editor_look(struct editor *editor, pid_t pid, struct purse *purse);

/* Whether the process has ended. False if the kernel cannot tell. */
bool editor_has_ended(const struct editor *editor);

/* After an edit of the group: also an idle process follows at once. */
void editor_ring(const struct editor *editor);

/* Finds the segment again if the process has moved the segment to a new file. -1 with the reason if the process has
 * ended, or the new segment cannot be opened. */
int editor_follow(struct editor *editor, struct error *error);

/* Copies the revision in force. */
int editor_read(struct editor *editor, struct segment_revision *revision, struct error *error);

/* Gives each process the wanted partitions, in turn; other GPUs keep theirs. An editor killed meanwhile leaves each
 * process changed or unchanged as a whole. If a process cannot be changed, all changed processes get the old partitions
 * back: then -1 with the reason. EDITOR_SOME if a process does not get the old partition back: the reason says how
 * many. Among several processes, ended processes are skipped. */
#define EDITOR_SOME (-2)
int editor_change(struct editor *editors, size_t count, const struct segment_revision *wanted, struct error *error);

/* --- one segment -------------------------------------------------------------------------------------------------- */

/* Replaces what `wanted` gives (partitions, time, memory) by a new revision; the rest stays. The next launch
 * obeys. Waits a bounded time while another editor writes. -1 with the reason, and nothing changed, if there is no room
 * for a further GPU, the lock cannot be had, or the segment is damaged. Also -1 if the segment has moved: then the edit
 * may or may not count, and must be repeated in the new file. The lock excludes by open file: two threads, or a process
 * and its fork, with the same struct segment do not exclude each other. `before` gets the revision that was in force,
 * and may be NULL. Editors should use an editor, which repeats the edit if needed. */
int segment_change(struct segment *segment, const struct segment_revision *wanted, struct segment_revision *before,
                   struct error *error);

/* Takes the edit `given` back; later edits stay (revision_put_back). */
int segment_take_back(struct segment *segment, const struct segment_revision *given, struct segment_revision *before,
                      struct error *error);

/* The same as both, also after the segment has moved. */
int editor_change_one(struct editor *editor, const struct segment_revision *wanted, struct segment_revision *before,
                      struct error *error);
int editor_take_back(struct editor *editor, const struct segment_revision *given, struct segment_revision *before);

/* Raises the number without a change: each thread and each graph decides anew at the next launch. -1 as for
 * segment_change. */
int segment_raise(struct segment *segment, struct error *error);

/* Whether the owner has moved to a new file (segment_keep_findable): editors must open the segment again. */
bool segment_has_moved(const struct segment *segment);
