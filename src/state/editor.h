/*
 * Changing the partitions of running processes: the one way to do so, for the command and for programs.
 *
 * Only the owner's threads, and edits of others, go on meanwhile. One editor is for one thread at a time.
 */
#ifndef NVTASKSET_EDITOR_H
#define NVTASKSET_EDITOR_H

#include "base/error.h"
#include "segment.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* A hold on the partition of one process, wherever its segment moves to. */
struct editor {
	pid_t pid;
	int process; /* a descriptor that stands for it, and no other that gets its pid; -1 where the kernel has none */
	struct segment segment;
};

/* SEGMENT_FOUND, and the caller closes it; otherwise the state and the reason, as segment_open. A process that is about to
 * have a segment is waited for: one that has just been started, for 200 ms of its life, 1 s where it has not executed a
 * program yet; one that runs the command nvtaskset, for 10 s; one that is making its segment, for 2 s. */
enum segment_state editor_open(struct editor *editor, pid_t pid, struct error *error);
void editor_close(struct editor *editor);

/* Whether the process has ended. False where the kernel cannot tell. */
bool editor_has_ended(const struct editor *editor);

/* Follows the process where it has moved its segment to a new file. -1 with the reason where it has ended, or cannot be
 * followed. */
int editor_follow(struct editor *editor, struct error *error);

/* Copies the revision in force. */
int editor_read(struct editor *editor, struct segment_revision *revision, struct error *error);

/* Gives all these processes these partitions, each on its GPU; other GPUs stay. All or none: -1 with the reason where one
 * cannot be changed, and those that were changed before it have what they had; the reason says so where that failed, too.
 * Of several, one that has ended needs none. */
int editor_change(struct editor *editors, size_t count, const struct segment_revision *wanted, struct error *error);

#endif
