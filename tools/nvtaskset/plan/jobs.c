#include "jobs.h"

#include <stdlib.h>

static int compare(const void *a, const void *b)
{
	uint64_t first = *(const uint64_t *)a, second = *(const uint64_t *)b;

	return (first > second) - (first < second);
}

/* The number that most of them are, if they are sorted. */
static uint64_t usual(const uint64_t *sorted, size_t count, double *same)
{
	uint64_t found = 0;
	size_t most = 0;

	for (size_t i = 0, run = 0; i < count; i++) {
		run = i > 0 && sorted[i] == sorted[i - 1] ? run + 1 : 1;
		if (run > most) {
			most = run;
			found = sorted[i];
		}
	}
	*same = count > 0 ? (double)most / (double)count : 0;
	return found;
}

/* How many kernels the jobs have, if shorter idle times are within one. The first and the last job do not count. */
static void count_kernels(struct jobs_rule *rule, const struct burst *bursts, size_t count, uint64_t *kernels)
{
	size_t jobs = 0;
	uint64_t sum = bursts[0].kernels;

	for (size_t i = 1; i < count; i++) {
		if (bursts[i].begin_ns - bursts[i - 1].end_ns >= rule->idle_ns) {
			kernels[jobs++] = sum;
			sum = 0;
		}
		sum += bursts[i].kernels;
	}
	rule->kernels = 0;
	rule->same = 0;
	if (jobs > 1) {
		qsort(kernels + 1, jobs - 1, sizeof *kernels, compare);
		rule->kernels = usual(kernels + 1, jobs - 1, &rule->same);
	}
}

struct jobs_rule jobs_rule(const struct burst *bursts, size_t count)
{
	struct jobs_rule rule = {.idle_ns = 0}, tried = {.idle_ns = 0};
	uint64_t *idle = calloc(count + 1, 2 * sizeof *idle);
	size_t place = 0;
	double jump = JOBS_JUMP;

	if (!idle || count < 2) {
		free(idle);
		return rule;
	}
	for (size_t i = 1; i < count; i++)
		idle[i - 1] = bursts[i].begin_ns - bursts[i - 1].end_ns;
	qsort(idle, count - 1, sizeof *idle, compare);
	for (size_t i = 1; i < count - 1; i++) {
		double ratio = (double)idle[i] / (double)(idle[i - 1] > 1000 ? idle[i - 1] : 1000);

		if (ratio >= jump) {
			jump = ratio;
			place = i;
		}
	}
	tried.idle_ns = idle[place];
	tried.within_ns = place > 0 ? idle[place - 1] : 0;
	count_kernels(&rule, bursts, count, idle + count);
	count_kernels(&tried, bursts, count, idle + count);
	free(idle);
	return place > 0 && tried.kernels > 0 && tried.same >= JOBS_SAME ? tried : rule;
}

size_t jobs_split(struct burst *bursts, size_t count, const struct jobs_rule *rule)
{
	size_t jobs = 0;

	for (size_t i = 1; i < count; i++) {
		bool is_new = bursts[i].begin_ns - bursts[i - 1].end_ns >= rule->idle_ns;

		if (is_new) {
			bursts[jobs++] = bursts[i];
		} else if (jobs > 0) {
			bursts[jobs - 1].end_ns = bursts[i].end_ns;
			bursts[jobs - 1].kernels += bursts[i].kernels;
		}
	}
	return jobs > 0 ? jobs - 1 : 0;
}

size_t jobs_keep(struct burst *jobs, size_t count, uint64_t kernels)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++) {
		if (jobs[i].kernels == kernels)
			jobs[kept++] = jobs[i];
	}
	return kept;
}

/* Of some idle times between the two, the one that makes the most such jobs. */
struct jobs_rule jobs_rule_like(const struct jobs_rule *rule, const struct burst *bursts, size_t count)
{
	struct jobs_rule best = {.idle_ns = 0}, tried = *rule;
	uint64_t *kernels = calloc(count + 1, sizeof *kernels);

	for (tried.idle_ns = rule->idle_ns; kernels && count > 1 && tried.idle_ns > rule->within_ns; tried.idle_ns /= 2) {
		count_kernels(&tried, bursts, count, kernels);
		if (tried.kernels == rule->kernels && tried.same > best.same)
			best = tried;
	}
	free(kernels);
	return best.same > 0 ? best : *rule;
}

struct jobs_times jobs_times(const struct burst *jobs, size_t count, uint64_t limit_ns)
{
	uint64_t *lengths = calloc(count + 1, sizeof *lengths);
	struct jobs_times times = {.count = lengths ? count : 0};

	for (size_t i = 0; i < times.count; i++) {
		lengths[i] = jobs[i].end_ns - jobs[i].begin_ns;
		times.late += lengths[i] > limit_ns;
	}
	if (times.count > 0) {
		size_t middle = count / 2;

		qsort(lengths, count, sizeof *lengths, compare);
		times.median_ns = (double)lengths[middle];
		times.longest_ns = (double)lengths[count - 1];
	}
	free(lengths);
	return times;
}
