/*
 * Counts the program's streams, in the segment. Under MPS, a program may hang with more streams than connections
 * (mps.md), and nvtaskset -l names the program.
 */
#pragma once

#include "driver/calls.h"
#include "state/segment/segment.h"

/* From here on, the number goes to the segment: at the start, and in the child of a fork, which has no streams. */
void streams_made_use(const struct segment *segment);

bool streams_made_wants_call(int id);
void streams_made_call_ended(const struct call *call);

/* A context's end announces no stream's end: the count begins again at 0, too small while further contexts have
 * some. */
void streams_made_context_destroyed(void);
