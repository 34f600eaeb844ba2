/*
 * Changes the partitions of running processes: the one way to do so, for the command and for programs.
 *
 * Meanwhile the owner's threads and other editors continue. One editor is for one thread at a time.
 */
#ifndef NVTASKSET_STATE_SEGMENT_EDITOR_H
#define NVTASKSET_STATE_SEGMENT_EDITOR_H

#include "base/error.h"
#include "segment.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

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

/* Whether the process has ended. False if the kernel cannot tell. */
bool editor_has_ended(const struct editor *editor);

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

#endif
