/*
 * Usage: queue [-w FACTORS] NODES [SEED LOAD]
 *
 * Simulates a queue of jobs on nodes of eight GPUs with 66 TPCs each (support/cluster.h, support/scheduler.h). A job that
 * asks for a part of a GPU gets that many TPCs; with -w it gets a whole GPU, on which it is faster by what FACTORS says: a
 * line "TPCS FACTOR" for some sizes; what lies between is interpolated (logarithms of both). Without a line, no job is faster.
 *
 * With SEED and LOAD, it makes the jobs of a day and a half, and prints lines "KIND,METRIC,VALUE" about those that came
 * within the last day; later no more come, and the queue is worked off. LOAD is what the jobs ask for, as a share of all
 * TPCs. METRIC is: jobs; start50, start99, end50 and end99, the percentiles of the hours from a job's arrival until it
 * starts and ends; given and used, the percent of all TPCs that jobs had in that day, and that they would have needed for
 * the work that was done; waiting, how many jobs waited at its end. The kinds, each of which brings a quarter of the work:
 *
 *   small   4 to 16 TPCs, all as often
 *   half    33 TPCs
 *   one     a GPU
 *   several 2, 4 or 8 GPUs of a node, all as often
 *
 * They come at random times (Poisson). How long they run is log-normal: two hours in the median, sigma 1.25, and cut at a
 * day. Users say one to three times as much, and not above a day. The same seed gives the same jobs, with -w and without.
 *
 * Without, it reads jobs from standard input, "ARRIVAL DURATION LIMIT GPUS TPCS" in the order of arrival, and prints for
 * each "START END NODE GPUS", these as a mask. Times are in seconds.
 */
#include "bench.h"
#include "scheduler.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HOUR_S 3600.0
#define BEFORE_S (12 * HOUR_S)
#define DAY_S (24 * HOUR_S)
#define MEDIAN_S (2 * HOUR_S)
#define SIGMA 1.25
#define LIMIT_S DAY_S

/* --- kinds ----------------------------------------------------------------------------------------------------------- */

enum kind { SMALL, HALF, ONE, SEVERAL, KINDS };

static const char *const names[] = {"small", "half", "one", "several", "all"};

#define SMALL_LEAST 4
#define SMALL_MOST 16
#define HALF_TPCS 33U
#define SEVERAL_CHOICES 3 /* 2, 4, 8 */

static const double mean_tpcs[KINDS] = {
	(SMALL_LEAST + SMALL_MOST) / 2.0,
	HALF_TPCS,
	CLUSTER_TPCS,
	(2 + 4 + 8) / (double)SEVERAL_CHOICES * CLUSTER_TPCS,
};

struct task {
	enum kind kind;
	double work; /* TPCs times seconds, where it has what it asks for */
};

static struct job *jobs;
static struct task *tasks; /* what else is known of each job */
static size_t count, room;

static void add(const struct job *job, enum kind kind)
{
	if (count == room) {
		room = room * 2 + 1024;
		jobs = realloc(jobs, room * sizeof *jobs);
		tasks = realloc(tasks, room * sizeof *tasks);
		if (!jobs || !tasks)
			bench_fail("out of memory");
	}
	jobs[count] = *job;
	tasks[count++] = (struct task){kind, job->duration * job->need.gpus * job->need.tpcs};
}

/* --- chance ---------------------------------------------------------------------------------------------------------- */

static uint64_t state;

/* Splitmix64: between 0 and 1, and neither. */
static double chance(void)
{
	uint64_t word = state += UINT64_C(0x9e3779b97f4a7c15);

	word = (word ^ word >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	word = (word ^ word >> 27) * UINT64_C(0x94d049bb133111eb);
	return ((double)((word ^ word >> 31) >> 11) + 0.5) / 9007199254740992.0;
}

static double exponential(double mean)
{
	return -mean * log(chance());
}

static double normal(void)
{
	double length = sqrt(-2 * log(chance()));

	return length * cos(2 * M_PI * chance());
}

static double below(double x)
{
	return erfc(-x / M_SQRT2) / 2;
}

static double duration(void)
{
	return fmin(MEDIAN_S * exp(SIGMA * normal()), LIMIT_S);
}

static double mean_duration(void)
{
	double cut = log(LIMIT_S / MEDIAN_S) / SIGMA;

	return MEDIAN_S * exp(SIGMA * SIGMA / 2) * below(cut - SIGMA) + LIMIT_S * (1 - below(cut));
}

/* A kind comes the more often, the smaller its jobs are. */
static enum kind choose_kind(void)
{
	double all = 0, left = chance();
	enum kind kind;

	for (kind = 0; kind < KINDS; kind++)
		all += 1 / mean_tpcs[kind];
	for (kind = 0; kind < KINDS - 1; kind++) {
		left -= 1 / mean_tpcs[kind] / all;
		if (left < 0)
			break;
	}
	return kind;
}

static struct need choose_need(enum kind kind)
{
	double value = chance();

	switch (kind) {
	case SMALL:
		return (struct need){1, SMALL_LEAST + (unsigned int)(value * (SMALL_MOST - SMALL_LEAST + 1))};
	case HALF:
		return (struct need){1, HALF_TPCS};
	case SEVERAL:
		return (struct need){2U << (unsigned int)(value * SEVERAL_CHOICES), CLUSTER_TPCS};
	default:
		return (struct need){1, CLUSTER_TPCS};
	}
}

static void make_job(double time)
{
	enum kind kind = choose_kind();
	struct job job = {.arrival = time, .need = choose_need(kind)};

	job.duration = duration();
	job.limit = fmin(job.duration * (1 + 2 * chance()), LIMIT_S);
	add(&job, kind);
}

static void make_jobs(unsigned int nodes, double load)
{
	double mean_work = 0, interval, time = 0;

	for (enum kind kind = 0; kind < KINDS; kind++)
		mean_work += 1 / mean_tpcs[kind];
	mean_work = KINDS / mean_work * mean_duration();
	interval = mean_work / (load * nodes * CLUSTER_GPUS * CLUSTER_TPCS);
	while ((time += exponential(interval)) < BEFORE_S + DAY_S)
		make_job(time);
}

static void read_jobs(void)
{
	struct job job = {.arrival = 0};

	while (scanf("%lf %lf %lf %u %u", &job.arrival, &job.duration, &job.limit, &job.need.gpus, &job.need.tpcs) == 5) {
		if (job.duration <= 0 || job.limit < job.duration || job.need.gpus < 1 || job.need.gpus > CLUSTER_GPUS ||
		    job.need.tpcs < 1 || job.need.tpcs > CLUSTER_TPCS || (job.need.gpus > 1 && job.need.tpcs < CLUSTER_TPCS) ||
		    (count > 0 && job.arrival < jobs[count - 1].arrival))
			bench_fail("no such job can be: the %zu. one", count + 1);
		add(&job, ONE);
	}
	if (!feof(stdin))
		bench_fail("ARRIVAL DURATION LIMIT GPUS TPCS: the %zu. job", count + 1);
}

/* --- whole GPUs ------------------------------------------------------------------------------------------------------ */

static double factors[CLUSTER_TPCS + 1]; /* by TPCs; 0: not given */

static void read_factors(const char *path)
{
	FILE *file = fopen(path, "re");
	unsigned int tpcs;
	double factor;

	if (!file)
		bench_fail("%s: cannot be read", path);
	while (fscanf(file, "%u %lf", &tpcs, &factor) == 2)
		if (tpcs >= 1 && tpcs < CLUSTER_TPCS)
			factors[tpcs] = fmax(factor, 1);
	if (!feof(file))
		bench_fail("%s: TPCS FACTOR", path);
	fclose(file);
}

/* On a line between the given sizes beside it; the whole GPU is one of them. */
static double factor_of(unsigned int tpcs)
{
	unsigned int less = tpcs, more = tpcs;

	factors[CLUSTER_TPCS] = 1;
	while (less > 0 && factors[less] == 0)
		less--;
	while (factors[more] == 0)
		more++;
	if (less == 0 || less == more)
		return factors[less > 0 ? less : more];
	return factors[less] * pow(factors[more] / factors[less], log((double)tpcs / less) / log((double)more / less));
}

static void give_whole_gpus(void)
{
	for (struct job *job = jobs; job < jobs + count; job++) {
		double factor = factor_of(job->need.tpcs);

		job->duration /= factor;
		job->limit /= factor;
		job->need.tpcs = CLUSTER_TPCS;
	}
}

/* --- what came out --------------------------------------------------------------------------------------------------- */

static int compare(const void *one, const void *other)
{
	double a = *(const double *)one, b = *(const double *)other;

	return (a > b) - (a < b);
}

static void print(enum kind kind, const char *metric, double value)
{
	printf("%s,%s,%.6g\n", names[kind], metric, value);
}

static void print_percentile(enum kind kind, const char *what, const double *ordered, size_t n, unsigned int percent)
{
	char metric[32];

	snprintf(metric, sizeof metric, "%s%u", what, percent);
	print(kind, metric, ordered[(n * percent + 99) / 100 - 1] / HOUR_S);
}

/* KINDS stands for all of them. */
static bool is_of(const struct job *job, enum kind kind)
{
	return job->arrival >= BEFORE_S && (kind == KINDS || tasks[job - jobs].kind == kind);
}

/* Hours from arrival to start, and to end. */
static void print_times(enum kind kind)
{
	double *waits = malloc((count + 1) * sizeof *waits), *ends = malloc((count + 1) * sizeof *ends);
	size_t n = 0;

	if (!waits || !ends)
		bench_fail("out of memory");
	for (const struct job *job = jobs; job < jobs + count; job++) {
		if (is_of(job, kind)) {
			waits[n] = job->start - job->arrival;
			ends[n++] = job->start - job->arrival + job->duration;
		}
	}
	print(kind, "jobs", (double)n);
	if (n > 0) {
		qsort(waits, n, sizeof *waits, compare);
		qsort(ends, n, sizeof *ends, compare);
		print_percentile(kind, "start", waits, n, 50);
		print_percentile(kind, "start", waits, n, 99);
		print_percentile(kind, "end", ends, n, 50);
		print_percentile(kind, "end", ends, n, 99);
	}
	free(waits);
	free(ends);
}

/* In percent of all TPCs: what jobs had, and what they would have needed for the work that was done. */
static void print_use(unsigned int nodes)
{
	double given = 0, used = 0, all = DAY_S * nodes * CLUSTER_GPUS * CLUSTER_TPCS;
	size_t waiting = 0;

	for (size_t i = 0; i < count; i++) {
		const struct job *job = &jobs[i];
		double begin = fmax(job->start, BEFORE_S), end = fmin(job->start + job->duration, BEFORE_S + DAY_S);

		if (end > begin) {
			given += (end - begin) * job->need.gpus * job->need.tpcs;
			used += (end - begin) * tasks[i].work / job->duration;
		}
		waiting += job->start >= BEFORE_S + DAY_S;
	}
	print(KINDS, "given", given / all * 100);
	print(KINDS, "used", used / all * 100);
	print(KINDS, "waiting", (double)waiting);
}

static void print_jobs(void)
{
	for (const struct job *job = jobs; job < jobs + count; job++)
		printf("%.6g %.6g %u %#x\n", job->start, job->start + job->duration, job->place.node, job->place.gpus);
}

int main(int given, char **arguments)
{
	const char *path = NULL;

	if (given > 2 && strcmp(arguments[1], "-w") == 0) {
		path = arguments[2];
		given -= 2;
		arguments += 2;
	}
	if (given != 2 && given != 4) {
		fputs("Usage: queue [-w FACTORS] NODES [SEED LOAD]\n", stderr);
		return EXIT_FAILURE;
	}
	unsigned int nodes = (unsigned int)bench_number(arguments[1], "NODES");

	if (given == 4) {
		state = (uint64_t)bench_number(arguments[2], "SEED");
		make_jobs(nodes, strtod(arguments[3], NULL));
	} else {
		read_jobs();
	}
	if (path) {
		read_factors(path);
		give_whole_gpus();
	}
	scheduler_run(jobs, count, nodes);
	if (given == 2)
		print_jobs();
	for (enum kind kind = 0; given == 4 && kind <= KINDS; kind++)
		print_times(kind);
	if (given == 4)
		print_use(nodes);
	free(jobs);
	free(tasks);
	return EXIT_SUCCESS;
}
