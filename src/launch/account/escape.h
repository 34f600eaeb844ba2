/*
 * Reports what runs outside the partition, or may. With --strict, the program ends. Otherwise it is counted, and the
 * first time a line on standard error says so.
 */
#ifndef NVTASKSET_LAUNCH_ACCOUNT_ESCAPE_H
#define NVTASKSET_LAUNCH_ACCOUNT_ESCAPE_H

#include "state/segment/segment.h"

/* A launch, a graph or a module does, for this reason. */
void escape_note(enum segment_reason reason);

/* All launches of the program do. `until` ends the message: " until …", or "". */
void escape_note_all(const char *reason, const char *until);

#endif
