#include "times.h"

/* Powers of two, in equal steps; below DURATIONS_STEPS, one bucket for each value. */
static unsigned int bucket_of(uint64_t ns)
{
	unsigned int bucket = (unsigned int)ns;

	if (ns >= DURATIONS_STEPS) {
		unsigned int power = 63 - (unsigned int)__builtin_clzll(ns); /* 4 … 63 */

		bucket = (power - 3) * DURATIONS_STEPS + (unsigned int)(ns >> (power - 4)) % DURATIONS_STEPS;
	}
	return bucket < DURATIONS_BUCKETS ? bucket : DURATIONS_BUCKETS - 1;
}

static uint64_t value_of(unsigned int bucket)
{
	unsigned int power = bucket / DURATIONS_STEPS + 3;
	uint64_t value = bucket;

	if (bucket >= DURATIONS_STEPS) {
		uint64_t step = UINT64_C(1) << (power - 4);

		value = (DURATIONS_STEPS + bucket % DURATIONS_STEPS) * step + step / 2;
	}
	return value;
}

void durations_add(struct durations *durations, uint64_t ns)
{
	if (durations->count == 0 || ns < durations->min_ns)
		durations->min_ns = ns;
	if (ns > durations->max_ns)
		durations->max_ns = ns;
	durations->count++;
	durations->sum_ns += ns;
	durations->sum_of_squares += (double)ns * (double)ns;
	durations->buckets[bucket_of(ns)]++;
}

void durations_merge(struct durations *to, const struct durations *from)
{
	if (from->count > 0 && (to->count == 0 || from->min_ns < to->min_ns))
		to->min_ns = from->min_ns;
	if (from->max_ns > to->max_ns)
		to->max_ns = from->max_ns;
	to->count += from->count;
	to->sum_ns += from->sum_ns;
	to->sum_of_squares += from->sum_of_squares;
	for (unsigned int bucket = 0; bucket < DURATIONS_BUCKETS; bucket++)
		to->buckets[bucket] += from->buckets[bucket];
}

double durations_average(const struct durations *durations)
{
	return durations->count > 0 ? (double)durations->sum_ns / (double)durations->count : 0;
}

/* The C library's needs libm. */
static double square_root(double value)
{
	double root = value > 1 ? value : 1;

	for (int step = 0; step < 100; step++)
		root = (root + value / root) / 2;
	return root;
}

double durations_deviation(const struct durations *durations)
{
	double count = (double)durations->count, average = durations_average(durations), variance = 0;

	if (durations->count > 1)
		variance = (durations->sum_of_squares - count * average * average) / (count - 1);
	return variance > 0 ? square_root(variance) : 0;
}

/* The middle of the bucket may lie outside of the extremes. */
uint64_t durations_median(const struct durations *durations)
{
	uint64_t seen = 0, value;
	unsigned int bucket = 0;

	while (bucket < DURATIONS_BUCKETS && 2 * (seen + durations->buckets[bucket]) < durations->count)
		seen += durations->buckets[bucket++];
	value = value_of(bucket);
	value = value < durations->min_ns ? durations->min_ns : value;
	return value > durations->max_ns ? durations->max_ns : value;
}
