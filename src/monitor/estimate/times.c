#include "times.h"

#include "base/extremes.h"
#include "gpu/tpcset.h"

#include <stdlib.h>
#include <string.h>

const struct times_calibration times_usual = {
	.plain = {.latency_ns = 4600, .release_ns = 760, .next_ns = 1060},
	.graph = {.latency_ns = 4900, .release_ns = 960, .next_ns = 110},
	.front_ns = 470,
	.paused_ns_per_ms = 350,
	.paused_most_ns = 6000,
	.latency_least_ns = 3300,
	.visible_least_ns = 650,
	.visible_most_ns = 1350,
};

const struct times_calibration times_under_mps = {
	.plain = {.latency_ns = 4600, .release_ns = 1240, .next_ns = 1120},
	.graph = {.latency_ns = 4900, .release_ns = 1440, .next_ns = 110},
	.front_ns = 550,
	.paused_ns_per_ms = 350,
	.paused_most_ns = 6000,
	.latency_least_ns = 3300,
	.visible_least_ns = 650,
	.visible_most_ns = 1350,
};

void times_open(struct times *times, const struct times_calibration *calibration, uint64_t now)
{
	*times = (struct times){.calibration = *calibration, .begin = now};
}

void times_close(struct times *times)
{
	free(times->intervals);
	*times = (struct times){.intervals = NULL};
}

/* --- clocks ----------------------------------------------------------------------------------------------------- */

void times_share(struct times *times, struct shared_clock *shared)
{
	times->shared = shared;
	times->has_offset = false;
}

static bool learn(struct times *times, enum clock_order order, uint64_t cpu, uint64_t gpu)
{
	bool is_new = clock_fit_add(&times->fit, order, cpu, gpu);

	return (times->shared && shared_clock_add(times->shared, order, cpu, gpu)) || is_new;
}

bool times_compare(struct times *times, const struct times_kernel *kernel, uint64_t unseen, uint64_t seen)
{
	const struct times_calibration *calibration = &times->calibration;
	uint64_t least = calibration->latency_least_ns + calibration->plain.release_ns,
		 timestamp = kernel->timestamp_ns;
	bool is_new =
	    kernel->launched_ns != 0 && learn(times, CLOCK_NOT_BEFORE, kernel->launched_ns + least, timestamp);

	is_new |= learn(times, CLOCK_NOT_AFTER, seen - calibration->visible_least_ns, timestamp);
	is_new |=
	    unseen != 0 && learn(times, CLOCK_USUALLY_NOT_BEFORE, unseen - calibration->visible_most_ns, timestamp);
	times->has_offset = times->has_offset && !is_new;
	return is_new;
}

/* Of two offsets, perhaps as far apart as numbers can be. */
static bool are_within(int64_t a, int64_t b, double most)
{
	double distance = (double)(int64_t)((uint64_t)a - (uint64_t)b);

	return distance <= most && distance >= -most;
}

bool times_clock(const struct times *times, uint64_t cpu, struct clock_offset *offset)
{
	struct clock_offset others;
	bool is_known = clock_fit_offset(&times->fit, cpu, offset);
	bool others_know = times->shared && shared_clock_offset(times->shared, cpu, &others);

	if (others_know && (!is_known || (others.error_ns < offset->error_ns &&
	                                  are_within(others.offset, offset->offset,
	                                             (double)others.error_ns + (double)offset->error_ns)))) {
		*offset = others;
		is_known = true;
	}
	return is_known;
}

/* For how long an offset counts, and the loss of exactness meanwhile. */
#define SAME_OFFSET_NS 100e6
#define SAME_OFFSET_ERROR_NS 100

static double since(const struct clock_offset *offset, uint64_t cpu)
{
	return (double)(int64_t)(cpu - offset->at);
}

static bool is_valid(const struct times *times, uint64_t cpu)
{
	double distance = since(&times->offset, cpu);

	distance = distance < 0 ? -distance : distance;
	return times->has_offset && distance < SAME_OFFSET_NS &&
	       distance * times->offset.drift_error < SAME_OFFSET_ERROR_NS;
}

bool times_convert(struct times *times, uint64_t timestamp, uint64_t near, uint64_t *time)
{
	struct clock_offset *last = &times->offset;
	uint64_t cpu = times->has_offset ? timestamp - (uint64_t)last->offset : near;

	if (!is_valid(times, cpu)) {
		times->has_offset = times_clock(times, cpu, last);
		cpu = timestamp - (uint64_t)last->offset;
	}
	*time = cpu - (uint64_t)(int64_t)(last->drift * since(last, cpu));
	return times->has_offset;
}

/* --- intervals -------------------------------------------------------------------------------------------------- */

bool times_add_interval(struct times *times, struct times_interval interval)
{
	if (times->count == times->room) {
		size_t room = times->room ? 2 * times->room : 256;
		struct times_interval *intervals = realloc(times->intervals, room * sizeof *intervals);

		if (!intervals)
			return false;
		times->intervals = intervals;
		times->room = room;
	}
	interval.tpcs = interval.tpcs < TPCSET_MAX ? interval.tpcs : TPCSET_MAX;
	if (interval.begin < interval.end || interval.kind == TIMES_KERNEL)
		times->intervals[times->count++] = interval;
	return true;
}

/* The entry of a stream; the entry unused for the longest time becomes a new stream's. */
static struct times_stream *stream_of(struct times *times, uint64_t stream)
{
	struct times_stream *oldest = &times->streams[0], *found = NULL;

	for (size_t i = 0; i < sizeof times->streams / sizeof times->streams[0] && !found; i++) {
		struct times_stream *entry = &times->streams[i];

		if (entry->used != 0 && entry->stream == stream)
			found = entry;
		else if (entry->used < oldest->used)
			oldest = entry;
	}
	if (!found) {
		*oldest = (struct times_stream){.stream = stream};
		found = oldest;
	}
	found->used = ++times->used;
	return found;
}

/* A hostile process's times may be anything. */
static uint64_t between(uint64_t value, uint64_t least, uint64_t most)
{
	return max_u64(least, min_u64(value, most));
}

/* From the launch to the kernel's begin. A program that comes back to the driver after a while is slower. */
static uint64_t latency_of(const struct times *times, const struct times_kernel *kernel)
{
	const struct times_calibration *calibration = &times->calibration;
	uint64_t pause =
	    times->launched != 0 && kernel->launched_ns > times->launched ? kernel->launched_ns - times->launched : 0;
	uint64_t longer = pause / 1000000 * calibration->paused_ns_per_ms;

	return calibration->plain.latency_ns + min_u64(longer, calibration->paused_most_ns);
}

/* The begin of a kernel whose timestamp, or the present, is `end` on the processor's clock. */
static uint64_t begin_of(struct times *times, const struct times_stream *stream, const struct times_kernel *kernel,
                         uint64_t end, bool *is_behind)
{
	uint64_t begin = sum_u64(kernel->launched_ns, latency_of(times, kernel)), behind;

	*is_behind = stream->timestamp != 0 && times_convert(times, stream->timestamp, end, &behind) &&
	             sum_u64(behind, times->calibration.plain.next_ns) > begin;
	if (*is_behind)
		begin = sum_u64(behind, times->calibration.plain.next_ns);
	return begin < end ? begin : end;
}

/* When graphs let a kernel begin, on the processor's clock, or earlier; 0: no graphs. TIMES_UNKNOWN also where the
 * timestamp is of an older launch, or behind the kernel. */
static uint64_t begin_behind(struct times *times, const struct times_graphs *graphs, const struct times_kernel *kernel)
{
	uint64_t end = 0, begin = TIMES_UNKNOWN;

	if (graphs->timestamp_ns == 0)
		begin = 0;
	else if (graphs->timestamp_ns <= kernel->timestamp_ns &&
	         times_convert(times, graphs->timestamp_ns, kernel->launched_ns, &end) && end >= graphs->launched_ns)
		begin = sum_u64(end, times->calibration.plain.next_ns);
	return begin;
}

static void wait_for_graphs(struct times *times, const struct times_kernel *kernel, struct times_interval *interval)
{
	uint64_t begin = begin_behind(times, &kernel->before, kernel);

	if (begin != TIMES_UNKNOWN && begin > interval->begin)
		interval->begin = begin < interval->end ? begin : interval->end;
	interval->may_be_shorter =
	    begin == TIMES_UNKNOWN || begin_behind(times, &kernel->perhaps_before, kernel) > interval->begin;
}

static bool estimate(struct times *times, const struct times_kernel *kernel, struct times_interval *interval)
{
	struct times_stream *stream = stream_of(times, kernel->stream);
	uint64_t timestamp = 0;
	bool is_known = times_convert(times, kernel->timestamp_ns, kernel->launched_ns, &timestamp);

	if (is_known) {
		uint64_t end =
		    timestamp -
		    (timestamp > times->calibration.plain.release_ns ? times->calibration.plain.release_ns : 0);

		*interval = (struct times_interval){
			.end = end, .tpcs = kernel->tpcs, .grid = kernel->grid, .kind = TIMES_KERNEL,
			.function = kernel->function, .is_borrowed = kernel->is_borrowed,
			.stream = kernel->stream, .launched = kernel->launched_ns};
		interval->begin = begin_of(times, stream, kernel, end, &interval->is_behind);
		wait_for_graphs(times, kernel, interval);
	}
	stream->timestamp = kernel->timestamp_ns;
	if (kernel->launched_ns > times->launched)
		times->launched = kernel->launched_ns;
	return is_known;
}

bool times_add(struct times *times, const struct times_kernel *kernel, uint64_t *duration_ns)
{
	struct times_interval interval;
	bool is_known = estimate(times, kernel, &interval);

	if (is_known) {
		*duration_ns = interval.may_be_shorter ? TIMES_UNKNOWN : interval.end - interval.begin;
		is_known = times_add_interval(times, interval);
	}
	return is_known;
}

/* Long before, clocks are compared more closely, if ends are seen at all (monitor/clocks.c). */
#define COARSE_NS 100000

bool times_know_duration(const struct times *times, uint64_t duration_ns)
{
	return duration_ns != TIMES_UNKNOWN &&
	       (times->offset.error_ns <= COARSE_NS || times->offset.error_ns <= duration_ns / 4);
}

bool times_add_running(struct times *times, const struct times_kernel *kernel, uint64_t now)
{
	struct times_interval interval = {.end = now, .tpcs = kernel->tpcs};

	interval.begin = begin_of(times, stream_of(times, kernel->stream), kernel, now, &interval.is_behind);
	return times_add_interval(times, interval);
}

void times_lose(struct times *times, uint64_t until)
{
	if (until > times->begin)
		times->begin = until;
}

/* --- sums ------------------------------------------------------------------------------------------------------- */

/* A begin or an end. */
struct edge {
	uint64_t time;
	unsigned int tpcs;
	int by; /* 1 or -1 */
};

/* The most TPCs of a running kernel. */
static unsigned int most_of(const unsigned int *running)
{
	unsigned int tpcs = TPCSET_MAX;

	while (tpcs > 0 && running[tpcs] == 0)
		tpcs--;
	return tpcs;
}

static void sweep(const struct edge *edges, size_t count, times_visitor *visit, void *data)
{
	unsigned int running[TPCSET_MAX + 1] = {0}, kernels = 0;

	for (size_t i = 0; i < count; i++) {
		if (kernels > 0 && edges[i].time > edges[i - 1].time)
			visit(data, edges[i - 1].time, edges[i].time, most_of(running));
		running[edges[i].tpcs] += (unsigned int)edges[i].by;
		kernels += (unsigned int)edges[i].by;
	}
}

void times_sweep(const struct times_interval *intervals, size_t count, uint64_t from, uint64_t until,
                 times_visitor *visit, void *data)
{
	struct edge *edges = malloc((2 * count + 1) * sizeof *edges);
	size_t found = 0;

	for (size_t i = 0; i < count && edges; i++) {
		uint64_t first = between(intervals[i].begin, from, until),
			 last = between(intervals[i].end, from, until);

		if (first < last && intervals[i].kind != TIMES_NODE) {
			edges[found++] = (struct edge){first, intervals[i].tpcs, 1};
			edges[found++] = (struct edge){last, intervals[i].tpcs, -1};
		}
	}
	if (edges) {
		qsort(edges, found, sizeof *edges, compare_u64);
		sweep(edges, found, visit, data);
	}
	free(edges);
}

struct sums {
	struct times_taken *taken;
	uint64_t last; /* the end of the last stretch, or the begin of all */
};

static void add_stretch(void *data, uint64_t begin, uint64_t end, unsigned int tpcs)
{
	struct sums *sums = data;

	sums->taken->busy_ns += end - begin;
	sums->taken->tpc_ns += (end - begin) * tpcs;
	sums->taken->changes += begin > sums->last;
	sums->last = end;
}

void times_take(struct times *times, uint64_t now, struct times_taken *taken)
{
	uint64_t begin = times->begin < now ? times->begin : now;
	struct clock_offset offset;

	*taken = (struct times_taken){.span_ns = now - begin};
	taken->error_ns = times_clock(times, now, &offset) ? offset.error_ns : UINT64_MAX;
	times_sweep(times->intervals, times->count, begin, now, add_stretch, &(struct sums){taken, begin});
	double error = (double)taken->error_ns * (double)taken->changes;

	taken->busy_error_ns = error < (double)taken->span_ns ? (uint64_t)error : taken->span_ns;
	/* At a time, a single struct has as much memory. */
	free(times->intervals);
	times->intervals = NULL;
	times->count = times->room = 0;
	times->begin = now;
}

#define FINE_NS 25000
#define BUSY_PART 0.05
#define SPAN_PART 0.01
#define SPAN_LEAST_NS 50000000 /* a shorter span is part of a longer span */

bool times_are_exact(const struct times_taken *taken)
{
	double changes = taken->changes > 0 ? (double)taken->changes : 1;
	double span = taken->span_ns > SPAN_LEAST_NS ? (double)taken->span_ns : SPAN_LEAST_NS;
	double error = (double)taken->error_ns * changes;

	return taken->error_ns <= FINE_NS || error <= BUSY_PART * (double)taken->busy_ns || error <= SPAN_PART * span;
}
