/*
 * Notes waiting launches while something in this process may change the masks (driver/pushbuffer/queue.h).
 *
 * A launch is noted only with a timestamp of its own: there the GPU says when the launch has ended.
 */
#pragma once

#include "driver/hook.h"
#include "state/kernels/timestamps.h"

/* From here on launches are noted, or no more. False with the reason if impossible. Not in the launch path. */
bool queued_want(bool wanted, struct error *error);

/* Whether to hear of a call: a launch, other work, or the end of a stream. Such a call begins. */
bool queued_wants_call(int id);
void queued_call_begins(const struct call *call);

/* The descriptor is written. The GPU writes the timestamp of the end into `cell`; number 0: no timestamp. */
void queued_launch(struct launch *launch, struct timestamps_cell cell);

/* Commands are in the pushbuffer (struct hook_events). Returns the end of the commands' launch; number 0: not known. */
struct launch_end queued_submits(struct launch *last, const struct submission *submission);
