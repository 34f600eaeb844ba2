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

#include <stdio.h>

/* What is displayed. */
struct view {
	/* Writes the present state, as whole lines, to `page`. -1 with the reason. */
	int (*look)(void *subject, const struct terminal *terminal, FILE *page, struct error *error);
	void *subject;
	bool is_data; /* for programs: never on the alternate screen, and without empty lines between */
};

/* Displays `view` every `seconds`, or once if that is 0. Returns after the one display or when the user has typed 'q';
 * -1 with the reason. Signals that end a program end this one after the terminal is restored. */
int watch(const struct view *view, double seconds, struct error *error);

#endif
