/*
 * For how long at once this program runs, while others have work as well: the time slices of all of its groups of channels
 * (driver/channels/channels.h), also of contexts that come meanwhile. The rules say for how long (time/rules/rules.h).
 *
 * Not for clients of MPS, whose channels are the server's. All others may have short ones, also those that may never be suspended
 * (eligibility.h): a program with a short slice goes on by itself. Its page faults, and programs that wait for it, only take
 * longer, as beside any other program.
 *
 * For our thread alone.
 */
#ifndef NVTASKSET_TIME_TURNS_TIMESLICE_H
#define NVTASKSET_TIME_TURNS_TIMESLICE_H

#include "time/demand/work.h"

#include <stdint.h>

/* From here on it has its own ones. */
void timeslice_begin(void);

/* Gives it slices of `wanted_us`; 0: its own ones. Asks the kernel driver only if that is another wish, or channels are new. A
 * kernel driver that refuses again and again is asked no more. */
void timeslice_obey(uint64_t wanted_us, const struct work *work);

/* Warns, once, of a kernel driver that is asked no more. Not while the program is suspended: the reader of our warnings may be
 * slow. */
void timeslice_report_refusal(void);

/* The program has its own ones again. */
void timeslice_end(void);

#endif
