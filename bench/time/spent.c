/*
 * Usage: spent KIND RUN_MS PERIOD_MS SECONDS
 *
 * Always has work on the GPU, of one warp, and notes when each launch was there, by its kernels' own looks at %globaltimer.
 * KIND is how long its kernels are: 10us, 1ms, 40ms, or graph, a graph of 1000 kernels of 10 µs, which is one launch.
 *
 * It has a quota of RUN in each PERIOD, for launches that are held back (src/time/gate/gate.h). Prints for each whole period:
 *
 *   LAUNCH_MS,BUDGET_MS,SPENT_MS
 *
 * the longest of the launches that began in it, what there was to spend, and what these have spent. What there is follows
 * from what was spent before, by TimeGraph's rules: RUN comes in each period, what was overrun is paid back, and nothing is
 * saved up.
 *
 * Periods begin where launches begin after a pause that only a quota makes; without one, with the first launch. The first
 * periods are left out: it is not known with how much the very first one began.
 */
#include "bench.h"
#include "in_flight.h"
#include "last_kernel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NS_PER_MS 1e6
#define BATCH_MAX 1000
#define PERIODS_UNKNOWN 4
#define SPANS_MAX 4000000

struct span {
	uint64_t begin, end;
};

static const struct kind {
	const char *name;
	uint64_t ns;          /* of a kernel */
	unsigned int kernels; /* of a batch */
	bool is_graph;
} kinds[] = {
	{"10us", 10000, 100, false},
	{"1ms", 1000000, 10, false},
	{"40ms", 40000000, 1, false},
	{"graph", 10000, BATCH_MAX, true},
};

static struct bench_gpu gpu;
static CUfunction last;

static struct batch {
	struct span *looks;
	CUdeviceptr address;
	CUgraphExec graph;
} batches[IN_FLIGHT];

static const struct kind *kind;
static struct in_flight work;

static struct span *launches; /* all that have ended, in their order */
static size_t launch_count;

/* --- launching ---------------------------------------------------------------------------------------------------- */

static void launch_all(const struct batch *batch)
{
	uint64_t ns = kind->ns;

	for (unsigned int i = 0; i < kind->kernels; i++) {
		CUdeviceptr look = batch->address + i * sizeof(struct span);
		void *arguments[] = {&look, &ns};

		bench_start(&gpu, &(const struct bench_launch){last, 1, 1, 32, 1, 0, arguments});
	}
}

static void prepare(struct batch *batch)
{
	batch->looks = (struct span *)(uintptr_t)bench_visible(BATCH_MAX * sizeof(struct span) / sizeof(uint32_t), &batch->address);
	if (kind->is_graph) {
		bench_capture(&gpu);
		launch_all(batch);
		batch->graph = bench_captured(&gpu);
	}
}

static void start(void)
{
	const struct batch *batch = &batches[in_flight_place(&work)];

	if (kind->is_graph)
		bench_check(cuGraphLaunch(batch->graph, gpu.stream));
	else
		launch_all(batch);
}

static void add(uint64_t begin, uint64_t end)
{
	if (launch_count == SPANS_MAX)
		bench_fail("more than %d launches", SPANS_MAX);
	launches[launch_count++] = (struct span){begin, end};
}

/* A graph is one launch, from its first kernel to its last one. */
static void take(unsigned int place)
{
	const struct batch *batch = &batches[place];

	if (kind->is_graph)
		add(batch->looks[0].begin, batch->looks[kind->kernels - 1].end);
	for (unsigned int i = 0; i < kind->kernels && !kind->is_graph; i++)
		add(batch->looks[i].begin, batch->looks[i].end);
}

/* --- periods ------------------------------------------------------------------------------------------------------ */

struct rules {
	double run, period; /* in ns */
};

/* Between launches that nothing holds back there are microseconds; a quota makes at least what is left of a period. */
static bool is_pause(const struct rules *rules, size_t launch)
{
	return (double)launches[launch].begin - (double)launches[launch - 1].end > (rules->period - rules->run) / 4;
}

/* Which launch begins the first period: one after a pause. */
static size_t first_of_period(const struct rules *rules)
{
	size_t first = 1;

	while (first < launch_count && !is_pause(rules, first))
		first++;
	return first < launch_count ? first : 0;
}

/* When the first period began: of all launches after a pause, the one that came the soonest says so. A period of which the
 * first launch is early by up to a twentieth is the next one. */
static double origin_of(const struct rules *rules, size_t first)
{
	double origin = (double)launches[first].begin, soonest = 0;

	for (size_t i = first + 1; i < launch_count; i++) {
		double since = (double)launches[i].begin - origin;
		double late = since - (double)(uint64_t)(since / rules->period + 0.5) * rules->period;

		if (is_pause(rules, i) && late < soonest && late > -rules->period / 20)
			soonest = late;
	}
	return origin + soonest - rules->period / 20;
}

static double longer(double one, double other)
{
	return one > other ? one : other;
}

static void print_periods(const struct rules *rules)
{
	size_t i = first_of_period(rules);
	double end = origin_of(rules, i) + rules->period, budget = rules->run;

	for (unsigned int number = 0; i < launch_count; number++) {
		double spent = 0, longest_here = 0;

		for (; i < launch_count && (double)launches[i].begin < end; i++) {
			double length = (double)(launches[i].end - launches[i].begin);

			spent += length;
			longest_here = longer(longest_here, length);
		}
		/* The last one is not whole. */
		if (number >= PERIODS_UNKNOWN && i < launch_count)
			printf("%.4f,%.4f,%.4f\n", longest_here / NS_PER_MS, budget / NS_PER_MS, spent / NS_PER_MS);
		budget += rules->run - spent;
		budget = budget < rules->run ? budget : rules->run;
		end += rules->period;
	}
}

/* --- the command line --------------------------------------------------------------------------------------------- */

#define USAGE "Usage: spent 10us|1ms|40ms|graph RUN_MS PERIOD_MS SECONDS"

static struct rules read_rules(char **arguments)
{
	struct rules rules = {.run = bench_number(arguments[0], "RUN_MS") * NS_PER_MS,
	                      .period = bench_number(arguments[1], "PERIOD_MS") * NS_PER_MS};

	if (rules.run <= 0 || rules.run > rules.period)
		bench_fail(USAGE);
	return rules;
}

int main(int count, char **arguments)
{
	if (count != 5)
		bench_fail(USAGE);
	kind = bench_find(arguments[1], kinds, sizeof kinds / sizeof kinds[0], sizeof kinds[0]);
	struct rules rules = read_rules(&arguments[2]);

	bench_open(&gpu);
	last = bench_kernel(last_ptx, "last");
	launches = calloc(SPANS_MAX, sizeof *launches);
	if (!launches)
		bench_fail("no memory");
	for (unsigned int i = 0; i < IN_FLIGHT; i++)
		prepare(&batches[i]);
	in_flight_open(&work, gpu.stream, start);
	in_flight_run(&work, bench_number(arguments[4], "SECONDS"), take);
	print_periods(&rules);
	free(launches);
	bench_close(&gpu);
	return EXIT_SUCCESS;
}
