#include "curve.h"

#include "base/extremes.h"

#include <stdlib.h>

#define SHORT_NS 1000 /* idle times that are shorter are as long as this */

static int compare(const void *a, const void *b)
{
	uint64_t first = *(const uint64_t *)a, second = *(const uint64_t *)b;

	return (first > second) - (first < second);
}

static uint64_t idle_before(const struct burst *burst)
{
	return burst->begin_ns - burst[-1].end_ns;
}

/* The number of kernels that most jobs have, if shorter idle times are within one. The first and the last job do not count. */
static void count_kernels(struct jobs_rule *rule, const struct burst *bursts, size_t count, uint64_t *kernels)
{
	size_t jobs = 0, most = 0;
	uint64_t sum = 0;

	for (size_t i = 0; i < count; i++) {
		if (i > 0 && idle_before(&bursts[i]) >= rule->idle_ns) {
			kernels[jobs++] = sum;
			sum = 0;
		}
		sum += bursts[i].kernels;
	}
	if (jobs > 1)
		qsort(kernels + 1, jobs - 1, sizeof *kernels, compare);
	for (size_t i = 1, run = 0; i < jobs; i++) {
		run = i > 1 && kernels[i] == kernels[i - 1] ? run + 1 : 1;
		if (run > most) {
			most = run;
			rule->kernels = kernels[i];
			rule->same = (double)most / (double)(jobs - 1);
		}
	}
}

struct jobs_rule jobs_rule(const struct burst *bursts, size_t count, uint64_t kernels)
{
	struct jobs_rule rule = {.idle_ns = 0};
	uint64_t *idle = calloc(count + 1, 2 * sizeof *idle);
	double jump = kernels > 0 ? JOBS_JUMP_KNOWN : JOBS_JUMP;

	if (idle && count > 1) {
		count_kernels(&rule, bursts, count, idle + count);
		for (size_t i = 1; i < count; i++)
			idle[i - 1] = idle_before(&bursts[i]);
		qsort(idle, count - 1, sizeof *idle, compare);
	}
	for (size_t i = 1; idle && i + 1 < count; i++) {
		struct jobs_rule tried = {.idle_ns = idle[i], .within_ns = idle[i - 1]};
		double ratio = (double)idle[i] / (double)max_u64(idle[i - 1], SHORT_NS);

		if (ratio < jump)
			continue;
		count_kernels(&tried, bursts, count, idle + count);
		if (kernels > 0 ? tried.kernels == kernels && (rule.kernels != kernels || tried.same > rule.same) : tried.same >= JOBS_SAME) {
			rule = tried;
			jump = kernels > 0 ? jump : ratio;
		}
	}
	free(idle);
	return rule;
}

struct jobs_times jobs_times(const struct burst *bursts, size_t count, const struct jobs_rule *rule, uint64_t kernels, uint64_t limit_ns)
{
	uint64_t *lengths = calloc(count + 1, sizeof *lengths);
	struct jobs_times times = {.count = 0};
	struct burst job = {.begin_ns = 0};

	for (size_t i = 1; i < count && lengths; i++) {
		if (idle_before(&bursts[i]) >= rule->idle_ns) {
			if (job.begin_ns > 0 && (kernels == 0 || job.kernels == kernels)) {
				lengths[times.count] = job.end_ns - job.begin_ns;
				times.late += lengths[times.count++] > limit_ns;
			}
			job = (struct burst){.begin_ns = bursts[i].begin_ns};
		}
		job.end_ns = bursts[i].end_ns;
		job.kernels += bursts[i].kernels;
	}
	if (times.count > 0) {
		size_t middle = times.count / 2;

		qsort(lengths, times.count, sizeof *lengths, compare);
		times.median_ns = (double)lengths[middle];
		times.longest_ns = (double)lengths[times.count - 1];
	}
	free(lengths);
	return times;
}
