/*
 * Work of which two repetitions are always in flight, so that the GPU never waits for the host; support/in_flight.py does the
 * same. For one thread, whose context is current.
 */
#ifndef IN_FLIGHT_H
#define IN_FLIGHT_H

#include "cuda_api.h"

#include <stdint.h>

#define IN_FLIGHT 2

struct in_flight {
	void (*start)(void); /* launches a repetition into the stream, and does not wait */
	CUstream stream;
	CUevent ends[IN_FLIGHT];
	unsigned int started, ended;
	int64_t last_end; /* 0: the GPU was at rest */
};

void in_flight_open(struct in_flight *work, CUstream stream, void (*start)(void));

/* Waits for the end of a repetition. Returns the µs since the end of the one before, or since now if it was at rest. */
double in_flight_step(struct in_flight *work);

/* Repeats it for so long, and calls `take` when one has ended, with its place: they have the places 0 to IN_FLIGHT - 1 in turn, and
 * `start` launches into in_flight_place. */
void in_flight_run(struct in_flight *work, double seconds, void (*take)(unsigned int place));
unsigned int in_flight_place(const struct in_flight *work);

/* Waits for all of them. */
void in_flight_rest(struct in_flight *work);

#endif
