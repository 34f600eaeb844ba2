/*
 * Keeps the kernels of this process inside the partition, from shim_set_up until the process ends. Called by
 * entry_loaded.c when the dynamic linker has loaded us in place of the driver, by entry_attached.c in a process that
 * was already running, and by libsmctrl.
 */
#pragma once

#include "base/error.h"
#include "driver/hook.h"
#include "state/segment/segment.h"

#include <stdbool.h>

/* Makes the segment and hooks the driver, which is loaded as `driver_name`. `is_late`: the program may have used the
 * driver before. `gpus` describes the GPUs (driver/gpus.h), or is NULL. The reason is set unless the result is
 * HOOK_SUBSCRIBED. After HOOK_FAILED nothing has changed. Once in a process. */
enum hook_state shim_set_up(const char *driver_name, bool is_late, const char *gpus, struct error *error);

/* --- events.c ----------------------------------------------------------------------------------------------------- */

/* Hands each call of the driver's API, and each new or ending context, to the modules, in their order. */

/* API calls (driver/hook.h): the listeners of a call; a wanted call begins, or has ended. */
unsigned int events_want_call(int id);
void events_call_begins(const struct call *call);
void events_call_ended(const struct call *call);

/* Commands of the thread (driver/hook.h). */
void events_submits(struct launch *last, const struct submission *submission);

/* We are subscribed. `is_late`: there may be unannounced contexts. */
void events_subscribed(bool is_late);

void events_context_created(CUcontext context);
void events_context_destroyed(CUcontext context);

/* --- inherit.c ---------------------------------------------------------------------------------------------------- */

/*
 * The partition of a process without a segment of its own yet: the parent's current partition, as with CPU affinity,
 * and not the partition at the parent's start.
 *
 * Read from, in this order:
 *   1. the segment whose descriptor the process has inherited;
 *   2. if the descriptor was closed on the way, or the owner has moved to a new segment: the segment of the nearest
 *      ancestor with a segment. The search ends with the process that got the partition from nvtaskset (NVTASKSET_PID);
 *   3. the environment.
 *
 * The process's group (state/group/group.h): the file in NVTASKSET_GROUP_FILE; else the segment's group; else the group
 * of an inherited descriptor.
 */

struct inheritance {
	struct segment_revision revision;
	struct group group; /* none, or for the caller to close */
	int descriptor;     /* names the group */
};

/* Reads the environment: before another thread can change it, and not in a program with more privileges than its user.
 * If the partition may not be the parent's current partition, a line on standard error says so, or with --strict the
 * program ends. -1 with the reason if the environment has no valid partition. */
int inherit_partition(struct inheritance *inheritance, struct error *error);
