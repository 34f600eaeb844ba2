/* Which call of the driver's API goes to whom, and what a context that comes or goes means to whom; in their order. */
#ifndef NVTASKSET_SHIM_EVENTS_H
#define NVTASKSET_SHIM_EVENTS_H

#include "driver/hook.h"

#include <stdbool.h>

/* API calls: whether we must hear of one; one of these begins, or has ended. */
bool events_want_call(int id);
void events_call_begins(const struct call *call);

/* The most frequent ones, which launch a kernel without further wishes. */
void events_kernel_call(struct frame *frame, int id, const struct call_words *words);

/* The same for a call that begins or ends and needs no more than a moment: whether that was all. Before events_want_call. */
bool events_call_passes(const struct call *call, bool begins);
void events_call_ended(const struct call *call);

/* We are subscribed. `is_late`: there may be contexts that were not announced to us. */
void events_subscribed(bool is_late);

void events_context_created(CUcontext context);
void events_context_destroyed(CUcontext context);

#endif
