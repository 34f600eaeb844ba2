/*
 * What runs outside the partition, or may: under --strict the program ends; otherwise that is counted, and said the first
 * time.
 */
#ifndef NVTASKSET_SHIM_ESCAPE_H
#define NVTASKSET_SHIM_ESCAPE_H

#include "state/segment.h"

/* A launch does, or what the reason speaks of. */
void escape_note(enum segment_reason reason);

/* All that the program launches does. With what is to be said after it. */
void escape_note_all(const char *reason, const char *until);

#endif
