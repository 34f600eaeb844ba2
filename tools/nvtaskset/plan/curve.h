/*
 * Which kernels of a program are one job, and how long a job takes with so many TPCs, as measured at a few sizes. Pure functions.
 */
#ifndef NVTASKSET_PLAN_CURVE_H
#define NVTASKSET_PLAN_CURVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* --- jobs: bursts of kernels between two idle times --------------------------------------------------------------- */

/* While it lasted, some kernel was launched and had not ended. */
struct burst {
	uint64_t begin_ns, end_ns;
	uint64_t kernels;
};

/* How jobs are told apart. */
struct jobs_rule {
	uint64_t idle_ns;   /* a shorter idle time is within a job */
	uint64_t within_ns; /* the longest of those */
	uint64_t kernels;   /* of a job, as most have; 0: there are too few to say */
	double same;        /* of the jobs have so many */
};

/* The longest idle times that stand out, by a gap of JOBS_JUMP between them and the shorter ones, where that makes jobs with the
 * same number of kernels; otherwise each burst is a job. Where `kernels` is not 0, those that make most jobs with so many: a smaller gap
 * will do. */
#define JOBS_JUMP 3.0
#define JOBS_JUMP_KNOWN 1.2
#define JOBS_SAME 0.8
struct jobs_rule jobs_rule(const struct burst *bursts, size_t count, uint64_t kernels);

/* How long jobs of so many kernels took (0: all jobs), and how many longer than `limit_ns`. The first and the last do not count. */
struct jobs_times {
	size_t count, late;
	double median_ns, longest_ns;
};
struct jobs_times jobs_times(const struct burst *bursts, size_t count, const struct jobs_rule *rule, uint64_t kernels, uint64_t limit_ns);

/* --- their times, by size ----------------------------------------------------------------------------------------- */

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

/* A time at a size that was not measured, by the nearest ones and a / m + b between them; never more than a smaller one's, since
 * more TPCs make no job longer: what disturbed one measurement does not count at larger sizes. 0: it is not known, as below the
 * smallest size that was measured. Above the largest, it is that one's. */
enum curve_time { CURVE_JOB, CURVE_LONGEST, CURVE_LAUNCH };
double curve_ns(const struct curve *curve, unsigned int tpcs, enum curve_time time);

/* What was seen of jobs at a size: where some were late, or they took longer than predicted by more than CURVE_LATE, that takes the place
 * of the curve's times, and other sizes follow in proportion; and true. */
#define CURVE_LATE 0.1
bool curve_learn(struct curve *curve, unsigned int tpcs, double predicted_ns, const struct jobs_times *seen);

/* C(m) = a / m + b, by least squares of the relative errors; neither is negative (section 3.3). */
struct curve_fit {
	bool is_known; /* there are three points */
	double a_ns, b_ns;
	double mean_error, worst_error; /* of the points, relative */
};
struct curve_fit curve_fit(const struct curve *curve);

/* The size from which a job gains nothing: the smallest with which it takes at most this much longer than the shortest. */
#define CURVE_NOTHING 0.03
unsigned int curve_enough(const struct curve *curve);

/* What a job's time depends on at the largest size, as far as the measured numbers tell; beside a neighbour that wants memory too,
 * if that was measured; NULL: it was not. */
struct curve_bound {
	const char *word, *text;
};
struct curve_bound curve_bound(const struct curve *curve, const struct curve *memory);

#endif
