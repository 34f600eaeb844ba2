/*
 * Which kernels of a program are one job: a burst of them between two idle times. Pure functions.
 */
#ifndef NVTASKSET_PLAN_JOBS_H
#define NVTASKSET_PLAN_JOBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
 * same number of kernels; otherwise each burst is a job. Where `kernels` is not 0, jobs have so many: a smaller gap will do. */
#define JOBS_JUMP 3.0
#define JOBS_JUMP_KNOWN 1.2
#define JOBS_SAME 0.8
struct jobs_rule jobs_rule(const struct burst *bursts, size_t count, uint64_t kernels);

/* Makes jobs of bursts, in place; returns how many. The first and the last may be cut off, and are left out. */
size_t jobs_split(struct burst *bursts, size_t count, const struct jobs_rule *rule);

/* How long jobs of so many kernels took (0: all jobs), and how many of them longer than `limit_ns`. */
struct jobs_times {
	size_t count, late;
	double median_ns, longest_ns;
};
struct jobs_times jobs_times(const struct burst *jobs, size_t count, uint64_t kernels, uint64_t limit_ns);

#endif
