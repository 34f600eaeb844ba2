/* The lesser and the greater of two numbers, and their order; a sum and a rest without wrapping around. */
#pragma once

#include <stdint.h>

static inline uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline uint64_t max_u64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* For qsort. The numbers may each be the first member of a struct. */
static inline int compare_u64(const void *a, const void *b)
{
	const uint64_t *left = a, *right = b;

	return (*left > *right) - (*left < *right);
}

static inline uint64_t sum_u64(uint64_t a, uint64_t b)
{
	return a + b >= a ? a + b : UINT64_MAX;
}

static inline uint64_t rest_u64(uint64_t all, uint64_t part)
{
	return all > part ? all - part : 0;
}

static inline int64_t min_i64(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static inline int64_t max_i64(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static inline double min_double(double a, double b)
{
	return a < b ? a : b;
}

static inline double max_double(double a, double b)
{
	return a > b ? a : b;
}
