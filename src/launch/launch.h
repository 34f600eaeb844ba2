/*
 * The way of a launch: asks the deciders in order, and carries out the decision.
 *
 * launch_upload is the launch path: no lock, no allocation, no system call but a lender's wake (space/bells.h). While
 * the epoch is the same (space/epoch.h), a launch gets this thread's cached decision. Decided anew are: the first
 * launch of a thread, on another context, after a change, or in an announced API call; kernels in graphs; launches of a
 * program with masks of its own; launches with blocks that must run at once.
 */
#pragma once

#include "driver/hook.h"
#include "launch/space/epoch.h"

/* A kernel is about to be uploaded, on the launching thread. */
void launch_upload(struct launch *launch);

/* The mask in the descriptor; all 0 if the launch is not restricted. */
struct qmd_mask launch_mask(const struct launch *launch);

/* The descriptor may have changed. TPCs that are disabled in `mask` are disabled again, beside TPCs that the change
 * disabled. */
void launch_keep_mask(struct launch *launch, const struct qmd_mask *mask);

/* This thread's next launch is decided anew. */
void launch_forget(struct frame *frame);

/* A call begins, with the gate's answer in the frame; and has ended. A cached decision is for calls with the same
 * answer: otherwise EPOCH_OTHER keeps the decision from matching. Between calls, EPOCH_KEPT does where the decision has
 * more than the own part: fills and copies are kernels outside of calls. */
static inline void launch_enter_call(struct frame *frame)
{
	struct recent *recent = &frame->recent;

	if (frame->has_more != recent->has_more || (frame->has_more && !tpcset_equal(&frame->more, &recent->more)))
		recent->epoch |= EPOCH_OTHER;
	recent->epoch &= ~EPOCH_KEPT;
}

static inline void launch_leave_call(struct frame *frame)
{
	if (frame->recent.has_more)
		frame->recent.epoch |= EPOCH_KEPT;
}
