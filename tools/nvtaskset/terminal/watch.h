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
#include "events.h"
#include "terminal.h"

#include <stdio.h>

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

#endif
