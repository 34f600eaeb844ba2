/*
 * What the gate (time/gate/gate.h) says of a launch's TPCs for now, under MPS: less than the partition, while somebody of a higher
 * priority wants some of it; or more, while others are idle who lend theirs.
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

/* A decider (HACKING.md), after the partition and before masks of the program's own. */
void yielding_decide(const struct launch *launch, struct decision *decision);

#endif
