/*
 * Learns how long launches take (launch/account/lengths.h): some launches at a time are followed until the GPU has written when each
 * has ended. A launch behind another one of its stream began when that one ended. One that nothing was ahead of began when it was
 * launched, on the processor's clock; that is told too early by what a launch takes to arrive, never too late. Under the lock of
 * the gate.
 */
#ifndef NVTASKSET_TIME_GATE_SAMPLES_H
#define NVTASKSET_TIME_GATE_SAMPLES_H

#include "in_flight.h"
#include "launch/account/lengths.h"

#include <stdbool.h>
#include <stdint.h>

#define SAMPLES_MAX 8

/* The GPU's clock beside the processor's: it was ahead by `ahead` at least, in this period and the one before. */
struct samples_clock {
	int64_t ahead[2];
	uint64_t began; /* of the period; 0: nothing is known */
};

/* All zero: none is followed. */
struct samples {
	struct samples_clock clock;
	unsigned int count;
	struct sample {
		struct length *length; /* NULL: free */
		uint64_t key;
		enum length_place place;
		struct launch_end end; /* in_flight.h; one without a number of its own ends when nothing is in flight */
		struct launch_end ahead; /* number 0: it began then, by the processor's clock: */
		uint64_t launched_ns;
	} list[SAMPLES_MAX];
};

/* A launch that is to be followed, if there is room. */
void samples_add(struct samples *samples, const struct sample *sample);

/* What has ended by now says how long it took; `is_idle`: nothing is in flight. Returns the longest one of those that had more, in
 * ns. */
uint64_t samples_look(struct samples *samples, bool is_idle, uint64_t now);

/* Those that had more were disturbed. */
void samples_drop_more(struct samples *samples);

#endif
