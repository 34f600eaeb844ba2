/*
 * How long kernels took: exact sums and extremes, and a histogram for the median. Fixed size, no allocation; two can be
 * added up. All zero is empty.
 */
#ifndef NVTASKSET_MONITOR_ESTIMATE_DURATIONS_H
#define NVTASKSET_MONITOR_ESTIMATE_DURATIONS_H

#include <stdint.h>

/* A bucket is at most 1/16 of its value wide; values above 2^40 ns, 18 minutes, are in the last bucket. */
#define DURATIONS_STEPS 16 /* for each power of two */
#define DURATIONS_BUCKETS (DURATIONS_STEPS * 37)

struct durations {
	uint64_t count;
	uint64_t sum_ns, min_ns, max_ns;
	double sum_of_squares;
	uint32_t buckets[DURATIONS_BUCKETS];
};

void durations_add(struct durations *durations, uint64_t ns);
void durations_merge(struct durations *to, const struct durations *from);

/* 0 if empty. The median is within 1/32 of the exact median; the deviation is a sample's, 0 for one value. */
double durations_average(const struct durations *durations);
double durations_deviation(const struct durations *durations);
uint64_t durations_median(const struct durations *durations);

#endif
