#include "curve.h"

#include "base/extremes.h"

#include <stdlib.h>

#define SHORT_NS 1000 /* shorter idle times count as this time */

static uint64_t idle_before(const struct burst *burst)
{
	return burst->begin_ns - burst[-1].end_ns;
}

/* The jobs, with idle times below idle_ns inside. Returns the number. The first and the last job may be cut off. */
static size_t find_jobs(const struct burst *bursts, size_t count, uint64_t idle_ns, uint64_t *kernels,
                        uint64_t *lengths)
{
	uint64_t begin_ns = 0;
	size_t begun = 0;

	for (size_t i = 1; i < count; i++) {
		if (idle_before(&bursts[i]) >= idle_ns) {
			begin_ns = bursts[i].begin_ns;
			kernels[begun++] = 0;
		}
		if (begun > 0) {
			kernels[begun - 1] += bursts[i].kernels;
			lengths[begun - 1] = bursts[i].end_ns - begin_ns;
		}
	}
	return begun > 0 ? begun - 1 : 0;
}

/* The most frequent number of kernels in a job. `room` is for two numbers of each burst. */
static void count_kernels(struct jobs_rule *rule, const struct burst *bursts, size_t count, uint64_t *room)
{
	size_t jobs = find_jobs(bursts, count, rule->idle_ns, room, room + count), most = 0;

	qsort(room, jobs, sizeof *room, compare_u64);
	for (size_t i = 0, run = 0; i < jobs; i++) {
		run = i > 0 && room[i] == room[i - 1] ? run + 1 : 1;
		if (run > most) {
			most = run;
			rule->kernels = room[i];
			rule->same = (double)most / (double)jobs;
		}
	}
}

struct jobs_rule jobs_rule(const struct burst *bursts, size_t count, uint64_t kernels)
{
	struct jobs_rule rule = {.idle_ns = 0};
	uint64_t *idle = calloc(count + 1, 3 * sizeof *idle);
	double jump = kernels > 0 ? JOBS_JUMP_KNOWN : JOBS_JUMP;

	if (idle && count > 1) {
		count_kernels(&rule, bursts, count, idle + count);
		for (size_t i = 1; i < count; i++)
			idle[i - 1] = idle_before(&bursts[i]);
		qsort(idle, count - 1, sizeof *idle, compare_u64);
	}
	for (size_t i = 1; idle && i + 1 < count; i++) {
		struct jobs_rule tried = {.idle_ns = idle[i], .within_ns = idle[i - 1]};
		double ratio = (double)idle[i] / (double)max_u64(idle[i - 1], SHORT_NS);

		if (ratio < jump)
			continue;
		count_kernels(&tried, bursts, count, idle + count);
		if (kernels > 0 ? tried.kernels == kernels && (rule.kernels != kernels || tried.same > rule.same)
		                : tried.same >= JOBS_SAME) {
			rule = tried;
			jump = kernels > 0 ? jump : ratio;
		}
	}
	free(idle);
	return rule;
}

struct jobs_times jobs_times(const struct burst *bursts, size_t count, const struct jobs_rule *rule, uint64_t kernels,
                             uint64_t limit_ns)
{
	uint64_t *lengths = calloc(count + 1, 2 * sizeof *lengths);
	size_t jobs = lengths ? find_jobs(bursts, count, rule->idle_ns, lengths + count, lengths) : 0;
	struct jobs_times times = {.count = 0};

	for (size_t i = 0; i < jobs; i++) {
		if (kernels == 0 || lengths[count + i] == kernels) {
			times.late += lengths[i] > limit_ns;
			lengths[times.count++] = lengths[i];
		}
	}
	if (times.count > 0) {
		size_t middle = times.count / 2;

		qsort(lengths, times.count, sizeof *lengths, compare_u64);
		times.median_ns = (double)lengths[middle];
		times.longest_ns = (double)lengths[times.count - 1];
	}
	free(lengths);
	return times;
}
