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

#include <stdbool.h>

/* A kernel is about to be uploaded, on the launching thread. */
void launch_upload(struct launch *launch);

/* API calls: whether we must hear of one; one of these begins, or has ended. */
bool launch_wants_call(int id);
void launch_call_begins(const struct call *call);

/* The same for a call that begins or ends and needs no more than a moment: whether that was all. Before launch_wants_call. */
bool launch_call_passes(const struct call *call, bool begins);
void launch_call_ended(const struct call *call);

/* We are subscribed. `is_late`: there may be contexts that were not announced to us. */
void launch_subscribed(bool is_late);

void launch_context_created(CUcontext context);
void launch_context_destroyed(CUcontext context);

#endif
