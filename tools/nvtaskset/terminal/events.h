/*
 * What happens between two displays of a view.
 */
#ifndef NVTASKSET_TERMINAL_EVENTS_H
#define NVTASKSET_TERMINAL_EVENTS_H

#include "base/error.h"

#include <stdint.h>

enum event {
	EVENT_TIME,   /* the next display is due */
	EVENT_SIGNAL,
	EVENT_KEY,
	EVENT_CLOSED  /* standard output has no reader any more */
};

/* What is done again and again during a wait; all zero is nothing. */
struct meanwhile {
	void (*act)(void *context);
	void *context;
	int64_t every_ms;
};

/* Milliseconds since a fixed moment. */
int64_t event_now(void);

/* When the display after the one at `due` is due: `seconds` later, or `seconds` from now if that has passed already. */
int64_t event_due_after(int64_t due, double seconds);

/* Waits for an event, until `until`, as of event_now. `signals` and `keys` are descriptors, or -1. */
enum event event_wait(int64_t until, int signals, int keys, const struct meanwhile *meanwhile);

/* Waits until then. If standard output has no reader any more, it ends as a write to a closed pipe would: by SIGPIPE, or
 * by -1 with the reason if that is ignored. */
int event_wait_until(int64_t until, const struct meanwhile *meanwhile, struct error *error);

#endif
