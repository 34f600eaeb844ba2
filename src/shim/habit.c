#include "habit.h"

#define ALL_PPM 1000000

/* More than the chance of a few looks, and less than a program lives. */
#define LOOKS 32

/* Pauses of 0.3 ms after each 2 ms of work are seen in every eighth look. */
#define MOST_PPM 700000

bool habit_look(struct habit *habit, uint64_t now, bool is_seen)
{
	if (is_seen) {
		habit->seen_ppm += (ALL_PPM - habit->seen_ppm) / LOOKS;
		habit->seen = now;
	} else {
		habit->seen_ppm -= habit->seen_ppm / LOOKS;
	}
	return is_seen || (habit->seen_ppm >= MOST_PPM && now - habit->seen <= HABIT_PAUSE_NS);
}
