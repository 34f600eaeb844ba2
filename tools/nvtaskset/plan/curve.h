/*
 * How long a job takes with so many TPCs, as measured at a few sizes. Pure functions.
 */
#ifndef NVTASKSET_PLAN_CURVE_H
#define NVTASKSET_PLAN_CURVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CURVE_POINTS 16
#define CURVE_SIZES 10 /* so many are measured */

/* What is not known is 0. */
struct curve_point {
	unsigned int tpcs;
	unsigned int jobs;    /* so many were measured */
	double job_ns;        /* the median */
	double worst_ns;      /* the longest */
	double kernels_ns;    /* of a job: at least one kernel was on the GPU */
	double launch_ns;     /* the longest kernel */
	double jobs_per_s;    /* as they came: the program's load */
};

struct curve {
	unsigned int count;
	struct curve_point points[CURVE_POINTS]; /* by rising TPCs */
};

/* The sizes to measure, from the largest down to the smallest that is worth its time: each has about two thirds of the one before,
 * so that they are as far apart in time. Returns how many. */
unsigned int curve_sizes(unsigned int sizes[CURVE_SIZES], unsigned int largest);

/* The job of a size that was not measured, by the nearest ones and a / m + b between them; never less than a larger one's.
 * 0 below the smallest one that was measured. Above the largest, it is that one's. `worst`: of the longest jobs. */
double curve_ns(const struct curve *curve, unsigned int tpcs, bool worst);

/* C(m) = a / m + b, by least squares of the relative errors; neither is negative (section 3.3). */
struct curve_fit {
	bool is_known; /* there are three points */
	double a_ns, b_ns;
	double mean_error, worst_error; /* of the points, relative */
	unsigned int worst_tpcs;
};
struct curve_fit curve_fit(const struct curve *curve);

/* The size from which a job gains nothing: the smallest with which it takes at most this much longer than the shortest. */
#define CURVE_NOTHING 0.03
unsigned int curve_enough(const struct curve *curve);

/* How much of what TPCs could bring they do bring, between the smallest size that was measured and half of the largest; and from
 * there on: 1 is twice as fast with twice as many, 0 is nothing. Negative: it is not known. */
struct curve_gain {
	double low, high;
};
struct curve_gain curve_gain(const struct curve *curve);

/* What a job's time depends on, as far as the measured numbers tell. X(identifier, word, text). */
#define CURVE_BOUNDS(X)                                                                                                     \
	X(UNKNOWN, "unknown", "too few sizes were measured to tell what binds it")                                           \
	X(LAUNCHES, "launches", "launches and the processor: the GPU is idle for most of a job, with all TPCs")                 \
	X(TPCS, "arithmetic", "its TPCs, up to the largest size: arithmetic, or caches of their own")                          \
	X(MEMORY, "memory", "memory, from there on: a neighbour that copies slows it down, one that computes does not")         \
	X(SHARED, "saturated", "it is no longer its TPCs: memory, or too few blocks to fill more. --beside memory tells")      \
	X(BLOCKS, "blocks", "too few blocks to fill more TPCs, or one after the other: a neighbour that copies does not slow it down")

enum curve_bound {
#define CURVE_BOUND_ENUM(identifier, word, text) CURVE_##identifier,
	CURVE_BOUNDS(CURVE_BOUND_ENUM)
#undef CURVE_BOUND_ENUM
};
const char *curve_bound_word(enum curve_bound bound);
const char *curve_bound_text(enum curve_bound bound);

/* `slowdown`: how much longer the job takes at the largest size beside a neighbour that wants memory, relative; negative: it was
 * not measured. */
enum curve_bound curve_bound(const struct curve *curve, double slowdown);

#endif
