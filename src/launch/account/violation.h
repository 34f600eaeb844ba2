/*
 * Reports what runs outside the partition, or may. With --strict, the program ends. Otherwise it is counted, and the
 * first time a line on standard error says so.
 */
#ifndef NVTASKSET_LAUNCH_ACCOUNT_VIOLATION_H
#define NVTASKSET_LAUNCH_ACCOUNT_VIOLATION_H

#include "state/segment/segment.h"

/* A launch, a graph or a module does, for this reason. */
void violation_note(enum segment_reason reason);

/* All launches of the program do. `until` ends the message: " until …", or "". */
void violation_note_all(const char *reason, const char *until);

/*
 * --strict: ends the program, with the reason, before something runs outside the partition. We end a program nowhere
 * else, and here its user has asked for it.
 */

/* Reads the environment. Call it before another thread can change that. */
void violation_open(void);

/* Something is about to run unrestricted. With --strict, prints the reason and ends the process; otherwise does
 * nothing. */
void violation_refuse(const char *reason);

#endif
