/*
 * Displays something once, or again and again.
 *
 * On a terminal, each display replaces the one before on the alternate screen, until a signal ends the program or the
 * user types 'q'. The terminal is then restored. In a file or a pipe, displays follow each other, separated by an empty
 * line.
 */
#ifndef NVTASKSET_TERMINAL_WATCH_H
#define NVTASKSET_TERMINAL_WATCH_H

#include "base/error.h"
#include "terminal.h"

#include <stdint.h>
#include <stdio.h>

/* What is done again and again during a wait; all zero is nothing. */
struct meanwhile {
	void (*act)(void *context);
	void *context;
	int64_t every_ms;
};

/* What is displayed. */
struct watch {
	void *subject;
	/* Learns what there is now. -1 with the reason. */
	int (*update)(void *subject, struct error *error);
	/* Writes that, as whole lines, to `page`. -1 with the reason. */
	int (*draw)(void *subject, const struct terminal *terminal, FILE *page, struct error *error);
	/* Takes what keys sent. False ends the display. NULL: 'q' does. */
	bool (*take_keys)(void *subject, const char *bytes, size_t length);
	struct meanwhile meanwhile;
	bool is_data;     /* for programs: never on the alternate screen, and without empty lines between */
	bool is_measured; /* between two updates, and the caller has made the first: a file begins with the second */
};

/* Displays it every `seconds`, or once. Returns after the one display, or when a key has ended it; -1 with the reason.
 * Signals that end a program end this one after the terminal is restored. */
int watch(const struct watch *watch, double seconds, bool once, struct error *error);

/* Whether a key or a signal waits for the display that is on the screen. */
bool watch_is_wanted(void);

/* --- for looks of others ------------------------------------------------------------------------------------------ */

/* Milliseconds since a fixed moment. */
int64_t event_now(void);

/* When the display after the one at `due` is due: `seconds` later, or `seconds` from now if that has passed already. */
int64_t event_due_after(int64_t due, double seconds);

/* Waits until then. If standard output has no reader any more, it ends as a write to a closed pipe would: by SIGPIPE, or
 * by -1 with the reason if that is ignored. */
int event_wait_until(int64_t until, const struct meanwhile *meanwhile, struct error *error);

#endif
