/* Which call of the driver's API goes to whom, and what a context that comes or goes means to whom; in their order. */
#ifndef NVTASKSET_SHIM_EVENTS_H
#define NVTASKSET_SHIM_EVENTS_H

#include "driver/hook.h"

#include <stdbool.h>

/* API calls (driver/hook.h): who wants one; a wanted one begins, or has ended. */
unsigned int events_want_call(int id);
void events_call_begins(const struct call *call);
void events_call_ended(const struct call *call);

/* Commands of this thread (driver/hook.h). */
void events_submits(struct launch *last, const struct submission *submission);

/* We are subscribed. `is_late`: there may be contexts that were not announced to us. */
void events_subscribed(bool is_late);

void events_context_created(CUcontext context);
void events_context_destroyed(CUcontext context);

#endif
