/*
 * Usage: busy KERNELS
 *
 * How exactly is what somebody who looks (monitor/monitor.h) says of busy time, beside what kernels themselves saw on
 * %globaltimer: from the first look of the first block to the last one of the last, with a block on each SM. For each length
 * there are up to KERNELS kernels, and the GPU is idle after each, for PAUSE µs or longer; PAUSE is 0 for kernels that are 50
 * in a row, behind each of which the GPU is idle for as long as it takes to begin the next one:
 *
 *   share,US,PAUSE,PERCENT    looked at every 50 ms: by how much busy time is too long
 *   change,US,PAUSE,US        the same, of each kernel; of kernels in a row, their mean
 *
 * And what the estimate is made of (monitor/estimate/times.h), by the way of launching: plain, or graph1, graph10,
 * graph100, so many kernels in a row; the GPU is idle before:
 *
 *   way,plain,US,latency,US   from the launch, as it is recorded, to the first look of the first kernel
 *   way,plain,US,release,US   from the last look to the stamp
 *   way,plain,US,next,US      from the stamp to the first look of the next kernel
 *   way,plain,US,visible,US   from the stamp until this program, which waits for nothing else, sees it
 *   way,graph1,US,front,US    from the stamp of the kernel that the driver puts in front to the first look of the first one
 *   clock,pair,US             the clocks' distance, by which latency and visible are measured, differs from the true one by
 *                             no more; the same of the watcher's own (clock,watcher,US)
 */
#include "bench.h"
#include "clock_pairs.h"
#include "looks.h"
#include "own_times.h"
#include "monitor/monitor.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define NS_PER_US 1000
#define NS_PER_MS 1000000
#define KERNELS_MAX 400
#define PAUSE_NS (100 * NS_PER_US) /* where it does not matter */
#define PATIENCE_NS INT64_C(1000000000)
#define WAY_TIMES 100 /* two kernels each, or a graph */

#define ROW 50

/* The GPU is idle for at least `pause_us` after each kernel; 0: they are in rows. */
static const struct length {
	uint64_t us;
	int kernels;
	int64_t pause_us;
	bool has_ways; /* are measured, too */
} lengths[] = {
	{2, 300, 100, true},    {5, 300, 100, true},      {10, 300, 100, true},     {50, 300, 100, true},
	{200, 300, 100, true},  {1000, 125, 100, true},   {10000, 20, 100, false},  {10, 60, 1000, false},
	{10, 20, 5000, false},  {10, 20, 20000, false},   {10, 300, 0, false},      {50, 300, 0, false},
};

#define LENGTHS (int)(sizeof lengths / sizeof lengths[0])

static struct bench_gpu gpu;
static struct looks looks;
static const struct timestamps *ring;

/* What cannot be measured is said, and left out. */
static bool is_complete = true;

__attribute__((format(printf, 1, 2))) static bool complain(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	fputs("busy: ", stderr);
	vfprintf(stderr, format, arguments);
	fputc('\n', stderr);
	va_end(arguments);
	is_complete = false;
	return false;
}

/* --- looking ---------------------------------------------------------------------------------------------------- */

/* What was seen since the watcher began. */
static struct seen {
	uint64_t timed, lost, busy_ns, error_ns;
	uint32_t gaps;
	bool is_known;
} seen;

static pthread_mutex_t watching = PTHREAD_MUTEX_INITIALIZER;
static struct monitor *look;

/* GPUs on which nothing ran may say that they know nothing. */
static void take_locked(void)
{
	struct monitor_times times;
	struct error error;

	if (monitor_take(look, &times, NULL, &error) < 0)
		bench_fail("%s", error.reason);
	for (unsigned int i = 0; i < times.gpu_count; i++) {
		const struct monitor_gpu *on = &times.gpus[i];

		seen.gaps |= on->gaps;
		if (on->kernels > 0 || on->timed > 0 || on->busy_ns > 0) {
			seen.timed += on->timed;
			seen.lost += on->lost;
			seen.busy_ns += on->busy_ns;
			seen.is_known = on->is_time_known;
			seen.error_ns = on->error_ns;
		}
	}
}

static struct seen take(void)
{
	pthread_mutex_lock(&watching);
	take_locked();
	struct seen now = seen;

	pthread_mutex_unlock(&watching);
	return now;
}

static void *watch(void *data)
{
	for (;; bench_sleep(MONITOR_TAKE_MS * NS_PER_MS))
		take();
	return data;
}

/* Until so many more kernels have a time than `before`. False if they do not get one. */
static bool take_until(const struct seen *before, uint64_t kernels, struct seen *now)
{
	int64_t begin = bench_now();

	for (*now = take(); now->timed + now->lost - before->timed - before->lost < kernels && bench_now() - begin < PATIENCE_NS;)
		*now = take();
	return (now->timed - before->timed == kernels && now->is_known) ||
	       complain("of %llu kernels, %llu have a time, and %llu were lost; gaps %#x", (unsigned long long)kernels,
	                (unsigned long long)(now->timed - before->timed), (unsigned long long)(now->lost - before->lost),
	                now->gaps);
}

/* Clocks must have been compared, and how they drift apart be known: that takes some kernels while the other thread looks. */
#define WARM_UP_NS (700 * NS_PER_MS)

static void begin_to_watch(void)
{
	struct error error = {.reason = ""};
	int64_t begin = bench_now();
	pthread_t watcher;

	look = monitor_begin(getpid(), NULL, &error);
	if (!look || pthread_create(&watcher, NULL, watch, NULL) != 0)
		bench_fail("nobody can look: %s", error.reason);
	while (bench_now() - begin < WARM_UP_NS) {
		looks_launch(&looks, 0, 10 * NS_PER_US);
		bench_wait(&gpu);
		bench_sleep(PAUSE_NS);
	}
	struct seen now = take();

	if (now.is_known)
		printf("clock,watcher,%.3f\n", (double)now.error_ns / NS_PER_US);
	else
		complain("times are not known: gaps %#x", now.gaps);
}

/* --- what was launched ------------------------------------------------------------------------------------------ */

struct cell {
	uint64_t launched_ns; /* of its record */
	uint64_t timestamp_ns;
};

static bool read_launch(uint64_t number, struct cell *cell)
{
	const struct timestamps_record *record = &ring->records[number % TIMESTAMPS_CELLS];
	const struct timestamp *stamp = &ring->cells[number % TIMESTAMPS_CELLS];

	*cell = (struct cell){atomic_load(&record->launched_ns), atomic_load(&stamp->time)};
	return (atomic_load(&record->number) == number && atomic_load(&stamp->number) == number) ||
	       complain("launch %llu has no stamp", (unsigned long long)number);
}

static double length_of(const struct look *span)
{
	return (double)(span->end - span->begin);
}

/* --- errors ----------------------------------------------------------------------------------------------------- */

/* By how much longer the kernel is than by its own looks, if it begins with its launch and ends with its stamp. */
static bool read_excess(const struct look *span, uint64_t number, const struct clock_pair *before,
                        const struct clock_pair *after, double *excess)
{
	struct cell cell;
	bool is_known = read_launch(number, &cell);

	if (is_known)
		*excess = (double)(clock_pair_convert(before, after, cell.timestamp_ns) - (int64_t)cell.launched_ns) -
			  length_of(span);
	return is_known;
}

/* What the ways from a launch to the kernel and from its end to the stamp take is estimated the same for all. So the error
 * of a kernel is the mean one, and by how much its own ways differ from the others'. */
static void print_errors(const struct length *length, int kernels, const double *excesses, double truth, double busy)
{
	bool is_in_rows = length->pause_us == 0;
	double sum = 0;

	for (int i = 0; i < kernels && !is_in_rows; i++)
		sum += excesses[i];
	for (int i = 0; i < (is_in_rows ? 1 : kernels); i++)
		printf("change,%llu,%lld,%.3f\n", (unsigned long long)length->us, (long long)length->pause_us,
		       ((busy - truth - sum) / kernels + (is_in_rows ? 0 : excesses[i])) / NS_PER_US);
	printf("share,%llu,%lld,%.4f\n", (unsigned long long)length->us, (long long)length->pause_us, 100 * (busy - truth) / truth);
}

static void measure_errors(const struct length *length, int kernels)
{
	static struct look spans[KERNELS_MAX];
	static double excesses[KERNELS_MAX];
	struct clock_pair begin = clock_pair_measure(&gpu);
	double truth = 0;

	bench_sleep(NS_PER_MS);
	struct seen before = take(), after;
	uint64_t number = atomic_load(&ring->launches);
	bool is_known;

	for (int i = 0; i < kernels; i++) {
		looks_launch(&looks, i, length->us * NS_PER_US);
		if (length->pause_us > 0 || i % ROW == ROW - 1) {
			bench_wait(&gpu);
			bench_sleep(length->pause_us > 0 ? length->pause_us * NS_PER_US : PAUSE_NS);
		}
	}
	bench_wait(&gpu);
	is_known = take_until(&before, (uint64_t)kernels, &after);
	struct clock_pair end = clock_pair_measure(&gpu);

	looks_read(&looks, kernels, spans);
	for (int i = 0; i < kernels && is_known; i++) {
		is_known = read_excess(&spans[i], number + 1 + (uint64_t)i, &begin, &end, &excesses[i]);
		truth += length_of(&spans[i]);
	}
	if (is_known)
		print_errors(length, kernels, excesses, truth, (double)(after.busy_ns - before.busy_ns));
}

/* --- ways ------------------------------------------------------------------------------------------------------- */

/* Until the word is neither 0 nor `before`. When that was. */
static bool await_change(const _Atomic uint64_t *word, uint64_t before, int64_t *when)
{
	int64_t begin = bench_now();
	uint64_t value = before;

	for (*when = begin; (value == 0 || value == before) && *when - begin < PATIENCE_NS; *when = bench_now())
		value = atomic_load(word);
	return (value != 0 && value != before) || complain("a stamp does not come");
}

static void print_way(const char *launched, uint64_t us, const char *way, int64_t ns)
{
	printf("way,%s,%llu,%s,%.3f\n", launched, (unsigned long long)us, way, (double)ns / NS_PER_US);
}

static void print_clock(const struct clock_pair *pair)
{
	printf("clock,pair,%.3f\n", (double)(pair->most - pair->least) / 2 / NS_PER_US);
}

static void print_pair(uint64_t us, const struct look *spans, uint64_t number, int64_t seen_at,
                       const struct clock_pair *before, const struct clock_pair *after)
{
	struct cell one, other;

	if (!read_launch(number, &one) || !read_launch(number + 1, &other))
		return;
	print_way("plain", us, "latency", clock_pair_convert(before, after, spans[0].begin) - (int64_t)one.launched_ns);
	print_way("plain", us, "release", (int64_t)(one.timestamp_ns - spans[0].end));
	print_way("plain", us, "next", (int64_t)(spans[1].begin - one.timestamp_ns));
	print_way("plain", us, "visible", seen_at - clock_pair_convert(before, after, other.timestamp_ns));
}

/* Two kernels in a row, again and again. */
static void measure_plain(uint64_t us, int times)
{
	static struct look spans[2 * WAY_TIMES];
	static int64_t seen_at[WAY_TIMES];
	struct clock_pair before = clock_pair_measure(&gpu);
	uint64_t first = atomic_load(&ring->launches) + 1;
	bool goes_on = true;
	int count = 0;

	for (; count < times && goes_on; count++) {
		uint64_t number = first + 2 * (uint64_t)count + 1;

		looks_launch(&looks, 2 * count, us * NS_PER_US);
		looks_launch(&looks, 2 * count + 1, us * NS_PER_US);
		goes_on = await_change(&ring->cells[number % TIMESTAMPS_CELLS].time, 0, &seen_at[count]);
		bench_wait(&gpu);
		bench_sleep(PAUSE_NS);
	}
	looks_read(&looks, 2 * times, spans);
	struct clock_pair after = clock_pair_measure(&gpu);

	for (int i = 0; i < count && goes_on; i++)
		print_pair(us, &spans[2 * i], first + 2 * (uint64_t)i, seen_at[i], &before, &after);
	print_clock(&before);
	print_clock(&after);
}

static CUgraphExec make_graph(int kernels, uint64_t us)
{
	bench_capture(&gpu);
	for (int i = 0; i < kernels; i++)
		looks_launch(&looks, i, us * NS_PER_US);
	return bench_captured(&gpu);
}

static const struct timestamp *cell_of_node(uint64_t number)
{
	return &ring->cells[TIMESTAMPS_CELLS + number % TIMESTAMPS_NODES];
}

/* The stamps of the graph's kernels, in the order of time, and that of the driver's own kernel in front, 0 without. Returns
 * how many kernels there are. */
static int read_nodes(uint64_t first, uint64_t end, uint64_t *stamps, uint64_t *front)
{
	int count = 0;

	*front = 0;
	for (uint64_t number = first; number <= end && count < KERNELS_MAX; number++) {
		uint64_t time = atomic_load(&cell_of_node(number)->time);
		int at = count;

		if (atomic_load(&ring->node_records[number % TIMESTAMPS_NODES].function) == 0) {
			*front = time;
		} else {
			for (; at > 0 && stamps[at - 1] > time; at--)
				stamps[at] = stamps[at - 1];
			stamps[at] = time;
			count++;
		}
	}
	return count;
}

/* The number of the last node of the graph that was launched last. */
static uint64_t last_node(const struct timestamps_record *record)
{
	return atomic_load(&record->function) + (uint32_t)atomic_load(&record->nodes);
}

/* One launch of the graph, whose stamps the next one overwrites. */
struct replay {
	struct look spans[KERNELS_MAX];
	uint64_t stamps[KERNELS_MAX], front;
	uint64_t awaited; /* the stamp that is waited for */
	uint64_t launched_ns;
	int64_t seen_at;
};

static bool run_replay(CUgraphExec exec, int kernels, uint64_t end, struct replay *replay)
{
	const struct timestamp *awaited = cell_of_node(end);
	uint64_t before = atomic_load(&awaited->time);

	bench_check(cuGraphLaunch(exec, gpu.stream));
	const struct timestamps_record *record = &ring->records[atomic_load(&ring->launches) % TIMESTAMPS_CELLS];
	bool is_seen = await_change(&awaited->time, before, &replay->seen_at);

	bench_wait(&gpu);
	if (!is_seen || atomic_load(&record->kind) != TIMESTAMPS_GRAPH || last_node(record) != end)
		return complain("a graph of %d: its last node was %llu, and is %llu of launch %llu of kind %llu", kernels,
		                (unsigned long long)end, (unsigned long long)last_node(record),
		                (unsigned long long)atomic_load(&record->number), (unsigned long long)atomic_load(&record->kind));
	replay->awaited = atomic_load(&awaited->time);
	replay->launched_ns = atomic_load(&record->launched_ns);
	int found = read_nodes(atomic_load(&record->function), end, replay->stamps, &replay->front);

	looks_read(&looks, kernels, replay->spans);
	return found == kernels || complain("a graph of %d kernels has the stamps of %d", kernels, found);
}

static void print_replay(const char *name, uint64_t us, int kernels, const struct replay *replay,
                         const struct clock_pair *before, const struct clock_pair *after)
{
	print_way(name, us, "latency",
	          clock_pair_convert(before, after, replay->spans[0].begin) - (int64_t)replay->launched_ns);
	print_way(name, us, "release", (int64_t)(replay->stamps[kernels - 1] - replay->spans[kernels - 1].end));
	print_way(name, us, "visible", replay->seen_at - clock_pair_convert(before, after, replay->awaited));
	if (kernels > 1)
		print_way(name, us, "next", (int64_t)(replay->spans[1].begin - replay->stamps[0]));
	if (replay->front != 0)
		print_way(name, us, "front", (int64_t)(replay->spans[0].begin - replay->front));
}

static void measure_graph(int kernels, uint64_t us, int times)
{
	struct replay *replays = calloc((size_t)times, sizeof *replays);
	CUgraphExec exec = make_graph(kernels, us);
	char name[16];
	int count = 0;

	if (!replays)
		bench_fail("no memory");
	snprintf(name, sizeof name, "graph%d", kernels);
	bench_check(cuGraphLaunch(exec, gpu.stream)); /* uploads it */
	bench_wait(&gpu);
	uint64_t end = last_node(&ring->records[atomic_load(&ring->launches) % TIMESTAMPS_CELLS]);
	struct clock_pair before = clock_pair_measure(&gpu);

	while (count < times && run_replay(exec, kernels, end, &replays[count])) {
		count++;
		bench_sleep(PAUSE_NS);
	}
	struct clock_pair after = clock_pair_measure(&gpu);

	for (int i = 0; i < count; i++)
		print_replay(name, us, kernels, &replays[i], &before, &after);
	free(replays); /* the instance stays: no other one gets its handle */
}

int main(int count, char **arguments)
{
	int most = count == 2 ? (int)bench_number(arguments[1], "KERNELS") : 0;

	if (most <= 0)
		bench_fail("Usage: busy KERNELS");
	bench_open(&gpu);
	looks_open(&looks, &gpu, gpu.sm_count, KERNELS_MAX);
	clock_pair_measure(&gpu);
	begin_to_watch();
	ring = own_times_ring();
	for (int i = 0; i < LENGTHS; i++) {
		int kernels = most < lengths[i].kernels ? most : lengths[i].kernels, times = most < WAY_TIMES ? most : WAY_TIMES;

		measure_errors(&lengths[i], kernels);
		if (lengths[i].has_ways)
			measure_plain(lengths[i].us, lengths[i].us < 1000 ? times : times / 2);
		if (lengths[i].has_ways && (lengths[i].us == 2 || lengths[i].us == 10)) {
			measure_graph(1, lengths[i].us, times);
			measure_graph(10, lengths[i].us, times);
			measure_graph(100, lengths[i].us, times / 2 + 1);
		}
	}
	/* The context stays until the other thread, which looks, has ended with the program. */
	fflush(stdout);
	return is_complete ? EXIT_SUCCESS : EXIT_FAILURE;
}
