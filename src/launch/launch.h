/*
 * The way of a launch: asks the deciders in their order, and carries out the decision.
 *
 * launch_upload is the launch path: no lock, no allocation, no system call. While the epoch is the same
 * (launch/space/epoch.h), a launch gets this thread's cached decision. These launches are decided anew: the first of a
 * thread, on another context, after a change, or in an API call that we hear of; kernels in graphs; launches in a
 * program with masks of its own; launches whose blocks must run at once.
 */
#ifndef NVTASKSET_LAUNCH_LAUNCH_H
#define NVTASKSET_LAUNCH_LAUNCH_H

#include "driver/hook.h"
#include "launch/space/epoch.h"

/* A kernel is about to be uploaded, on the launching thread. */
void launch_upload(struct launch *launch);

/* This thread's next launch is decided anew. */
void launch_forget(struct frame *frame);

/* A call begins, for which the gate has an answer in the frame; and has ended. What a launch with more than its own part was
 * decided about is for calls with the same answer, and not for fills and copies, which are kernels in no call. */
static inline void launch_enter_call(struct frame *frame)
{
	struct recent *recent = &frame->recent;

	if (frame->has_more != recent->has_more || (frame->has_more && !tpcset_equal(&frame->more, &recent->more)))
		recent->epoch = EPOCH_NEVER;
	recent->epoch &= ~EPOCH_KEPT;
}

static inline void launch_leave_call(struct frame *frame)
{
	if (frame->recent.has_more)
		frame->recent.epoch |= EPOCH_KEPT;
}

#endif
