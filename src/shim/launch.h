/*
 * The way of a launch: which deciders it passes, in which order, and what is done with what they have decided.
 *
 * launch_upload is the launch path: no lock, no allocation, no system call; while the world stays the same (epoch.h), a
 * launch is given what this thread's last one was. Launches of graphs, those under masks of the program's own, those whose
 * blocks must run at once, and the first of a thread, on a context, after a change, or in a special call, do more.
 */
#ifndef NVTASKSET_SHIM_LAUNCH_H
#define NVTASKSET_SHIM_LAUNCH_H

#include "driver/hook.h"

#include <stdbool.h>

/* A kernel is about to be uploaded, on the launching thread. */
void launch_upload(struct launch *launch);

/* Calls of the driver around launches: which we must hear of, and what is done in them. */
bool launch_wants_call(int id);
void launch_call_begins(const struct call *call);
void launch_call_ended(const struct call *call);

/* We hear of launches from now on. `is_late`: some contexts are there already, which nobody announced. */
void launch_subscribed(bool is_late);

void launch_context_created(CUcontext context);
void launch_context_destroyed(CUcontext context);

#endif
