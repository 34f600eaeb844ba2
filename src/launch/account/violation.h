/*
 * Reports work that runs outside the partition, or may. With --strict, the program ends. Otherwise the work is counted,
 * and at the first time a line on standard error says so.
 */
#pragma once

#include "state/segment/segment.h"

/* A launch, a graph or a module runs outside, for the reason. */
void violation_note(enum segment_reason reason);

/* All launches of the program run outside. `until` ends the message: " until …", or "". */
void violation_note_all(const char *reason, const char *until);

/*
 * --strict: ends the program, with the reason, before work runs outside the partition. We end a program nowhere else,
 * and here the user has asked for the end.
 */

/* Reads the environment: to be called before another thread can change it. */
void violation_open(void);

/* Something is about to run unrestricted. With --strict, prints the reason and ends the process. */
void violation_refuse(const char *reason);
