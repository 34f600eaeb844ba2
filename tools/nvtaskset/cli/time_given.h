/* The time that a program was given, and the memory: as text, and whether the program can have them. */
#pragma once

#include "base/error.h"
#include "options.h"
#include "state/segment/segment.h"
#include "state/setting_text.h"

#include <sys/types.h>

/* Whether the program obeys: a weight is for programs that take turns, lending for clients of MPS. */
bool time_holds(const struct segment_revision *revision, enum segment_time_state state, enum setting setting);

/* "quota 30ms/100ms, priority 80": all given values. Returns `text`. */
#define TIME_LINE (SETTING_TEXT + 160)
const char *time_format_all(const struct segment_revision *revision, char text[TIME_LINE]);

/* "--quota, --priority": the options of the given values. Returns `text`. */
const char *time_options(const struct segment_revision *revision, char text[TIME_LINE]);

/* Without --mps: a line on standard error, which way of sharing the given time implies. `who`: "programs". */
void time_tell_way(const struct options *options, const char *who);

/* ": present for 1.2 s, suspended for 2.8 s", or ": on the GPUs for 1.2 s, held back for 2.8 s (35 launches)", and the
 * reason if not in force; "" if there is nothing to say. Returns `text`. */
#define TIME_USE 512
const char *time_describe(const struct segment_revision *revision, const struct segment_time *time,
                          char text[TIME_USE]);

/* Until when to wait for programs that were changed now, by clock_ms. */
double time_wait_end(void);

/* Waits until our thread in the process has seen the edit. Without our thread, the edit holds from the next call on. */
void time_wait(const struct segment *segment, double end_ms);

/* Why the time of `revision` will not be in force, by the process's state; NULL if it may be. */
const char *time_refusal(const struct segment_time *time, const struct segment_revision *revision);
