/*
 * The second decider: claims of other programs, under MPS. A launch may use less than the partition, while a program of
 * a higher priority has a claim to some TPCs of the partition; or more, while idle programs lend TPCs. The gate
 * (time/gate/gate.h) says both: less for all launches, by yielding_set_part; and more for the launch of a single call,
 * in the call's frame (driver/frame.h).
 *
 * For the program's own masks and green contexts, less is like a smaller partition. A mask in the partition with none
 * of the TPCs left is overruled meanwhile, and not counted. A launch whose blocks must run at once, and that fits into
 * the partition only, gets the partition (residency.h): the gate has let the launch wait. A node of a graph that cannot
 * be uploaded again keeps its TPCs.
 */
#pragma once

#include "decision.h"
#include "driver/hook.h"

/* From here on, launches on the GPU run in `part`; the empty set: in the whole partition. A launch whose frame has more
 * TPCs uses the frame's TPCs. From a single thread at a time; raises the epoch after a difference. */
void yielding_set_part(const struct gpu *gpu, const struct tpcset *part);

void yielding_decide(const struct launch *launch, struct decision *decision);

void yielding_after_fork(void);
