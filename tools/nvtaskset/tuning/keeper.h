/*
 * Partitions that are changed for a while. A child of this process gives them back: when it is told to, and also when this process
 * ends in any way, by SIGKILL too. It is in a session of its own, so signals to our terminal's programs do not reach it; only if
 * it is killed itself, with all of a container say, partitions stay as they are then. A partition that somebody else has changed
 * meanwhile stays, too.
 */
#ifndef NVTASKSET_TUNING_KEEPER_H
#define NVTASKSET_TUNING_KEEPER_H

#include "state/segment/edit.h"

#include <sys/types.h>

#define KEEPER_PROGRAMS 64 /* no more than these are changed and started */

struct keeper {
	pid_t child;
	int pipe;
	struct keeper_memory *memory; /* shared with the child */
};

/* Before any editor is opened: the child would hold the lock with which this process is killed. -1 with the reason. */
int keeper_start(struct keeper *keeper, struct error *error);

/* Changes a program, as often as wanted. `whole` has all TPCs of the GPU: a program without a partition gets these back. -1 with the
 * reason; also if somebody else has changed it since. */
int keeper_change(struct keeper *keeper, struct editor *editor, const struct segment_revision *whole, const struct segment_revision *wanted,
                  struct error *error);

/* A program that is started meanwhile, by itself: it is ended with SIGTERM where partitions are given back. */
void keeper_add(struct keeper *keeper, pid_t pid);

/* Gives all back, or leaves them as they are; and waits for that. Does nothing if it was not started, or has ended. -1: some could
 * not be given back. */
int keeper_end(struct keeper *keeper, bool gives_back);

#endif
