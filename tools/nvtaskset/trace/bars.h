/*
 * Programs on a GPU, as lines in a terminal: a place for every two TPCs. A program is idle in a place, works, or has
 * borrowed the place; of several programs in a place the busiest counts.
 */
#pragma once

#include "tracks.h"

#define BARS_MS 400
#define BARS_PROGRAMS 6 /* further programs are not drawn */

struct bars {
	const struct tracks *tracks; /* which programs on which GPUs */
	/* Of the last look: */
	pid_t pids[BARS_PROGRAMS];
	struct segment_borrowed borrowed[BARS_PROGRAMS];
};

/* Draws a line for each chosen GPU; in front of the lines the names of the programs, if the programs have changed. */
void bars_draw(struct bars *bars, const struct activities *activities, FILE *page);
