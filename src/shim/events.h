/* Hands each call of the driver's API, and each new or ending context, to the modules, in their order. */
#ifndef NVTASKSET_SHIM_EVENTS_H
#define NVTASKSET_SHIM_EVENTS_H

#include "driver/hook.h"

#include <stdbool.h>

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

#endif
