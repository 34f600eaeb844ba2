/*
 * Learns the lengths of launches (launch/account/lengths.h): a few launches at a time are followed until the GPU has
 * written the end of each. A launch behind another launch of the stream began at the end of the launch ahead. A launch
 * with nothing ahead began at the call, on the processor's clock: too early by the way to the GPU, and never too late.
 * Under the lock of the gate.
 */
#ifndef NVTASKSET_TIME_GATE_SAMPLES_H
#define NVTASKSET_TIME_GATE_SAMPLES_H

#include "in_flight.h"
#include "launch/account/lengths.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define SAMPLES_MAX 8

/* The GPU's clock was ahead of the processor's clock by `ahead` at least, in this period and the period before. */
struct samples_clock {
	int64_t ahead[2];
	uint64_t began; /* of the period; 0: nothing is known */
};

/* All zero: none is followed. */
struct samples {
	struct samples_clock clock;
	atomic_uint count; /* of the list; for all threads */
	struct sample {
		struct length *length; /* NULL: free */
		uint64_t key;
		enum length_place place;
		struct launch_end end;   /* or IN_FLIGHT_UNTIL_IDLE (in_flight.h) */
		struct launch_end ahead; /* number 0: nothing was ahead */
		uint64_t launched_ns;    /* on the processor's clock, where nothing was ahead */
	} list[SAMPLES_MAX];
};

/* A launch that is to be followed, if there is room. */
void samples_add(struct samples *samples, const struct sample *sample);

/* Notes the lengths of launches that have ended; `is_idle`: nothing is in flight. Returns the longest length with more
 * TPCs, in ns. */
uint64_t samples_look(struct samples *samples, bool is_idle, uint64_t now);

/* Launches with more TPCs were disturbed: their lengths are not noted. */
void samples_drop_more(struct samples *samples);

#endif
