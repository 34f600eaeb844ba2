/*
 * The time slices of all groups of channels of the program (driver/channels/channels.h), also of contexts that come
 * meanwhile: how long the program runs at once beside programs with work. The rules say how long (time/rules/rules.h).
 *
 * Not for clients of MPS: their channels are the server's. Even a program that is never suspended may have short
 * slices (eligibility.h): the program goes on by itself. Page faults and waiting programs take longer, as beside any
 * neighbour.
 *
 * For our thread alone.
 */
#ifndef NVTASKSET_TIME_TURNS_TIMESLICE_H
#define NVTASKSET_TIME_TURNS_TIMESLICE_H

#include "time/demand/work.h"

#include <stdint.h>

/* Begins anew: the program has its own slices. */
void timeslice_begin(void);

/* Gives slices of `wanted_us`; 0: the own slices. Asks the kernel driver for new lengths and new channels only, and no
 * more after repeated refusals. */
void timeslice_obey(uint64_t wanted_us, const struct work *work);

/* Warns, once, of a kernel driver that is asked no more. Not in a suspension: the reader of our warnings may be
 * slow. */
void timeslice_report_refusal(void);

/* The program has its own slices again. */
void timeslice_end(void);

#endif
