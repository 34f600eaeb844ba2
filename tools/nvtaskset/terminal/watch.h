/*
 * Displays something once, or again and again.
 *
 * On a terminal, each display replaces the display before on the alternate screen, until a signal ends the program or
 * the user types 'q'. The terminal is then restored. In a file or a pipe, displays follow each other, separated by an
 * empty line.
 */
#pragma once

#include "base/error.h"
#include "terminal.h"

#include <stdint.h>
#include <stdio.h>

/* An action, again and again during a wait; all zero: none. */
struct meanwhile {
	void (*act)(void *context);
	void *context;
	int64_t every_ms;
};

struct watch {
	void *subject;
	/* Looks anew. -1 with the reason. */
	int (*update)(void *subject, struct error *error);
	/* Writes whole lines to `page`. -1 with the reason. */
	int (*draw)(void *subject, const struct terminal *terminal, FILE *page, struct error *error);
	/* Takes the bytes of keys. False ends the display. NULL: 'q' ends the display. */
	bool (*take_keys)(void *subject, const char *bytes, size_t length);
	struct meanwhile meanwhile;
	bool is_data;     /* for programs: never on the alternate screen, and without empty lines between */
	/* Measures between two updates, and the caller has made the first: a file begins with the second. */
	bool is_measured;
};

/* Displays every `seconds`, or once. Returns after the one display, or when a key has ended the display; -1 with the
 * reason. A signal that ends a program ends this process after the terminal is restored. */
int watch(const struct watch *watch, double seconds, bool once, struct error *error);

/* Whether a key or a signal waits for the display on the screen. */
bool watch_is_wanted(void);

/* --- for looks elsewhere ------------------------------------------------------------------------------------------ */

/* Milliseconds since a fixed moment. */
int64_t watch_event_now(void);

/* The time of the display after `due`: `seconds` later, or `seconds` from now if that has passed already. */
int64_t watch_event_due_after(int64_t due, double seconds);

/* Waits until then. Without a reader of standard output, ends like a write to a closed pipe: by SIGPIPE, or by -1 with
 * the reason if SIGPIPE is ignored. */
int watch_wait_until(int64_t until, const struct meanwhile *meanwhile, struct error *error);
