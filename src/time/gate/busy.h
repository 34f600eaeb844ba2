/*
 * By how much the time has risen in which anything was on a GPU, if something more was: two things at the same time
 * count once.
 *
 * Things come roughly in the order of time: the last stretches of busy time are remembered. What overlaps with older ones
 * counts as if those had not been, which is too much rather than too little. Pure: one thread at a time for each struct
 * busy.
 */
#ifndef NVTASKSET_TIME_GATE_BUSY_H
#define NVTASKSET_TIME_GATE_BUSY_H

#include <stdint.h>

#define BUSY_STRETCHES 64

/* All zero is one that was never busy. */
struct busy {
	unsigned int count;
	struct busy_stretch {
		uint64_t begin, end;
	} stretches[BUSY_STRETCHES]; /* in the order of time; they do not touch each other */
};

/* Something was there from `begin` to `end`. */
uint64_t busy_add(struct busy *busy, uint64_t begin, uint64_t end);

#endif
