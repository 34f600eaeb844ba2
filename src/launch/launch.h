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

#endif
