/*
 * The kernels of a job of a program, and the time of a job by TPCs, as measured at a few sizes. Pure functions.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* --- jobs: bursts of kernels between two idle times --------------------------------------------------------------- */

/* Throughout a burst, at least one launched kernel has not ended. */
struct burst {
	uint64_t begin_ns, end_ns;
	uint64_t kernels;
};

/* How jobs are told apart. */
struct jobs_rule {
	uint64_t idle_ns;   /* a shorter idle time is within a job */
	uint64_t within_ns; /* the longest idle time within a job */
	uint64_t kernels;   /* of most jobs; 0: there are too few jobs to say */
	double same;        /* the part of jobs with this number */
};

/* Jobs end at the longest idle times that stand out, by a gap of JOBS_JUMP above the shorter times, if all jobs then
 * have the same number of kernels; otherwise each burst is a job. With `kernels`, jobs end at the idle times that make
 * most jobs with that number: a smaller gap will do. */
#define JOBS_JUMP 3.0
#define JOBS_JUMP_KNOWN 1.2
#define JOBS_SAME 0.8
struct jobs_rule jobs_rule(const struct burst *bursts, size_t count, uint64_t kernels);

/* The times of jobs with `kernels` kernels (0: all), and the number above `limit_ns`, without the first and the last
 * job. */
struct jobs_times {
	size_t count, late;
	double median_ns, longest_ns;
};
struct jobs_times jobs_times(const struct burst *bursts, size_t count, const struct jobs_rule *rule, uint64_t kernels,
                             uint64_t limit_ns);

/* --- their times, by size ----------------------------------------------------------------------------------------- */

#define CURVE_POINTS 16
#define CURVE_SIZES 10 /* the most sizes measured */

/* Numbers that are not known are 0. */
struct curve_point {
	unsigned int tpcs;
	unsigned int jobs;    /* measured jobs */
	double job_ns;        /* the median */
	double worst_ns;      /* the longest */
	double kernels_ns;    /* of a job: the time with at least one kernel on the GPU */
	double launch_ns;     /* the longest kernel */
	double jobs_per_s;    /* the program's load */
};

struct curve {
	unsigned int count;
	struct curve_point points[CURVE_POINTS]; /* by rising TPCs */
};

/* The sizes to measure, from the largest down to the smallest that is worth its time. Each has about two thirds of the
 * TPCs of the size before: equal steps in time. Returns the number. */
unsigned int curve_sizes(unsigned int sizes[CURVE_SIZES], unsigned int largest);

/* A time at any size: between measured sizes, by a / m + b. Never more than at a smaller size, since more TPCs make no
 * job longer: a disturbed measurement does not count at larger sizes. Above the largest measured size, the time there.
 * 0: not known, as below the smallest measured size. */
enum curve_time { CURVE_JOB, CURVE_LONGEST, CURVE_LAUNCH };
double curve_ns(const struct curve *curve, unsigned int tpcs, enum curve_time time);

/* Learns from the jobs of a check. If some were late, or took longer than predicted by more than CURVE_LATE, the times
 * take the place of the curve's, and the rest of the curve follows in proportion; then true. */
#define CURVE_LATE 0.1
bool curve_learn(struct curve *curve, unsigned int tpcs, double predicted_ns, const struct jobs_times *seen);

/* C(m) = a / m + b, by least squares of the relative errors; neither a nor b is negative. */
struct curve_fit {
	bool is_known; /* there are three points */
	double a_ns, b_ns;
	double mean_error, worst_error; /* of the points, relative */
};
struct curve_fit curve_fit(const struct curve *curve);

/* The size from which a job gains nothing: the smallest size with a time at most this part above the shortest time. */
#define CURVE_NOTHING 0.03
unsigned int curve_enough(const struct curve *curve);

/* The limit of a job's time at the largest size, as far as the measured numbers tell. `memory`: the curve beside a
 * neighbour that wants memory too, or NULL. */
struct curve_bound {
	const char *word, *text;
};
struct curve_bound curve_bound(const struct curve *curve, const struct curve *memory);
