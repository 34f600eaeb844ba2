/*
 * What others have a claim to, under MPS: a launch may use less than the partition, while somebody of a higher priority has a claim
 * to some of it; or more, while others are idle who lend theirs. The gate (time/gate/gate.h) says both: less for all launches, here;
 * and other TPCs for the launch of one call, in its frame (driver/calls.h).
 *
 * Less is as a smaller partition to the program's own masks and green contexts; one that lies in the partition, but has none of what
 * is left, is overruled for as long, and not counted. Launches whose blocks must run at once, and that the partition holds, but not
 * what is left of it, get what they would have got otherwise (residency.h); the gate has let them wait for that. A node of a graph
 * that cannot be uploaded again keeps what it has.
 */
#ifndef NVTASKSET_LAUNCH_SPACE_YIELDING_H
#define NVTASKSET_LAUNCH_SPACE_YIELDING_H

#include "decision.h"
#include "driver/hook.h"

/* From here on, launches on this GPU that are told nothing else may use these TPCs; an empty set: the partition. From one thread at
 * a time; raises the epoch if that is new. */
void yielding_leave(const struct gpu *gpu, const struct tpcset *part);

/* A decider (HACKING.md), after the partition and before masks of the program's own. */
void yielding_decide(const struct launch *launch, struct decision *decision);

/* In the child of a fork. */
void yielding_after_fork(void);

#endif
