/*
 * Shows something once, or again and again.
 *
 * On a terminal each look takes the place of the one before, on the alternate screen, until a signal ends the program
 * or 'q' is typed; the terminal is then as it was. Elsewhere, looks follow each other with an empty line between.
 */
#ifndef NVTASKSET_WATCH_H
#define NVTASKSET_WATCH_H

#include "base/error.h"
#include "terminal.h"

#include <stdio.h>

/* What is shown. */
struct view {
	/* Writes one look at it, whole lines, to `page`. -1 with the reason. */
	int (*look)(void *subject, const struct terminal *terminal, FILE *page, struct error *error);
	void *subject;
	bool is_data; /* for programs: never drawn on a screen, no empty lines between */
};

/* Every `seconds`, or once where that is 0. Returns when the user has typed 'q', or once; -1 with the reason. A signal
 * that ends programs ends this one, once the terminal is as it was. */
int watch(const struct view *view, double seconds, struct error *error);

#endif
