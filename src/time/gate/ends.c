#include "ends.h"

#include "base/extremes.h"
#include "base/process_clock.h"
#include "busy.h"
#include "monitor/estimate/behind.h"
#include "monitor/estimate/node_stamps.h"
#include "monitor/estimate/times.h"
#include "state/kernels/stamps_read.h"

#include <stdlib.h>

/* --- what is known ------------------------------------------------------------------------------------------------ */

struct gpu {
	struct pci_address pci;
	bool is_exact; /* its clock is known well */
	struct times times;
	struct busy busy;
};

/* An instance of a graph. What is known of nodes that it does not have any more is known of no others: each has a number of
 * its own. */
struct graph {
	const struct stamps *ring; /* NULL: none */
	uint64_t exec;
	struct node_order order;
	uint64_t end;       /* of its last launch, on the processor's clock; 0: not known */
	uint64_t length_ns; /* of the last launch whose begin was known; 0: not known */
	uint64_t used;      /* when, in launches of graphs that were measured */
};

#define GRAPHS 64

/* In the heap, since only programs that are held back have it. */
static struct known {
	unsigned int gpu_count;
	struct gpu gpus[COUNTS_GPUS];
	struct graph graphs[GRAPHS];
	uint64_t used;
	unsigned int in_vain; /* so many launches were measured since all clocks were known well */
	struct node_stamps nodes; /* of the graph that is looked at */
} *known;

/* Clocks that are known so well are good enough for any kernel; so many launches are seen closely for that. */
#define EXACT_NS 30000
#define IN_VAIN_MAX 64

void ends_begin(void)
{
	ends_end();
	known = calloc(1, sizeof *known);
}

void ends_end(void)
{
	for (unsigned int i = 0; known && i < known->gpu_count; i++)
		times_close(&known->gpus[i].times);
	free(known);
	known = NULL;
}

/* NULL if there is no memory, or there are more GPUs than any program has. */
static struct gpu *gpu_of(const struct stamps *ring)
{
	struct gpu *found = NULL;
	bool is_shared = ring && atomic_load_explicit(&ring->is_shared_by_mps, memory_order_relaxed);

	if (!ring || !known)
		return NULL;
	for (unsigned int i = 0; i < known->gpu_count && !found; i++)
		found = pci_address_equal(known->gpus[i].pci, ring->pci) ? &known->gpus[i] : NULL;
	if (!found && known->gpu_count < COUNTS_GPUS) {
		found = &known->gpus[known->gpu_count++];
		found->pci = ring->pci;
		times_open(&found->times, is_shared ? &times_under_mps : &times_usual, 0);
	}
	return found;
}

/* NULL if nothing is known of it. */
static struct graph *find_graph(const struct stamps *ring, uint64_t exec)
{
	struct graph *found = NULL;

	for (unsigned int i = 0; i < GRAPHS && !found; i++)
		found = known->graphs[i].ring == ring && known->graphs[i].exec == exec ? &known->graphs[i] : NULL;
	return found;
}

static struct graph *oldest_graph(void)
{
	struct graph *oldest = &known->graphs[0];

	for (unsigned int i = 1; i < GRAPHS; i++)
		oldest = known->graphs[i].used < oldest->used ? &known->graphs[i] : oldest;
	return oldest;
}

/* One that was not launched for the longest time makes room. */
static struct graph *graph_of(const struct stamps *ring, uint64_t exec)
{
	struct graph *found = find_graph(ring, exec);

	if (!found) {
		found = oldest_graph();
		*found = (struct graph){.ring = ring, .exec = exec};
	}
	found->used = ++known->used;
	return found;
}

/* --- one kernel ----------------------------------------------------------------------------------------------------- */

struct estimate {
	uint64_t begin, end;
	uint64_t duration_ns; /* mostly end - begin */
	bool may_be_shorter;
};

static struct estimate estimate_of(uint64_t begin, uint64_t end)
{
	return (struct estimate){.begin = begin, .end = end, .duration_ns = end - begin};
}

/* By so much the estimate of a kernel's time may be too short (docs/hardware.md, "Holding back"): what is charged is rather too much
 * than too little. */
#define TOO_SHORT_NS 600

static const struct node_order *order_of(void *ring, const struct stamps_event *graph)
{
	const struct graph *found = find_graph((const struct stamps *)ring, graph->exec);

	return found ? &found->order : NULL;
}

static bool estimate_kernel(struct times *times, const struct ends_launch *launch, struct estimate *estimate)
{
	struct times_interval interval;
	struct stamps_event event;

	if (!stamps_read_launch(launch->ring, launch->number, &event) || event.state != STAMPS_ENDED)
		return false;
	struct times_kernel kernel = {
		.stream = event.stream,
		.launched_ns = event.launched_ns,
		.stamp_ns = event.stamp_ns,
		.tpcs = event.tpcs,
	};

	times_compare(times, &kernel, launch->unseen, launch->seen);
	behind_find(&kernel, launch->ring, &event, order_of, (void *)launch->ring);
	bool is_known = times_estimate(times, &kernel, &interval);

	if (is_known) {
		*estimate = estimate_of(interval.begin - TOO_SHORT_NS, interval.end);
		estimate->may_be_shorter = interval.may_be_shorter;
	}
	return is_known;
}

/* --- a graph ---------------------------------------------------------------------------------------------------------- */

/* Of so many launches behind one of a graph, it is looked whether they are of the same graph. */
#define LAUNCHES_BEHIND 256

/* There, other numbers may stand than were ever written. */
static bool has_nodes(const struct stamps_event *event)
{
	return event->state == STAMPS_GRAPH_LAUNCHED && event->first > 0 && event->last >= event->first &&
	       event->last - event->first < STAMPS_NODES && event->last < STAMPS_IS_NODE;
}

/* How long a launch took whose begin is known by the kernel in front of its nodes (`length`, or 0), or by the launch before
 * it. Otherwise it may have waited: then not for longer than others took. */
static uint64_t duration_of(struct graph *graph, uint64_t length, uint64_t since_it_could_begin, bool is_behind)
{
	uint64_t duration = length > 0 ? length : since_it_could_begin;

	if (length > 0 || is_behind)
		graph->length_ns = duration;
	else if (graph->length_ns > 0 && duration > graph->length_ns)
		duration = graph->length_ns;
	return duration;
}

/* Each launch of an instance writes over the stamps of the one before. So if it was launched again, the end may be that of a
 * later launch. Where it is later than this one was seen, this one ended when it was seen; otherwise the later one seems to
 * have taken no time, and both together took as long as they did. */
static struct estimate estimate_end(struct graph *graph, const struct times *times, const struct stamps_event *event,
                                    uint64_t stamp, uint64_t seen, bool is_last)
{
	const struct times_ways *ways = event->tpcs == 1 ? &times->calibration.plain : &times->calibration.graph;
	uint64_t begin = event->launched_ns + ways->latency_ns, behind = graph->end + ways->release_ns + ways->next_ns;
	uint64_t end = min_u64(stamp - ways->release_ns, seen), length = node_stamps_length(&known->nodes, &times->calibration);
	bool is_behind = graph->end != 0 && behind > begin;

	if (is_behind)
		begin = behind;
	if (is_last && length > 0)
		begin = end - length;
	struct estimate estimate = estimate_of(begin < end ? begin : end, end);

	estimate.duration_ns = duration_of(graph, length, estimate.duration_ns, is_behind);
	graph->end = end;
	return estimate;
}

static bool estimate_graph(struct times *times, const struct ends_launch *launch, struct estimate *estimate)
{
	struct stamps_event event;
	uint64_t stamp = 0;

	if (!stamps_read_launch(launch->ring, launch->number, &event) || !has_nodes(&event))
		return false;
	struct graph *graph = graph_of(launch->ring, event.exec);
	bool is_last = !stamps_is_launched_again(launch->ring, launch->number, event.exec, LAUNCHES_BEHIND);

	if (!node_stamps_read(&known->nodes, launch->ring, event.exec, event.first, event.last, is_last, &graph->order))
		return false;
	/* The end is later than this one's launch, also if it is a later one's: so that one was seen by now only. */
	const struct times_kernel end = {.launched_ns = event.launched_ns, .stamp_ns = known->nodes.end};

	times_compare(times, &end, launch->unseen, process_clock_ns());
	bool is_known = times_convert(times, end.stamp_ns, launch->seen, &stamp);

	if (is_known)
		*estimate = estimate_end(graph, times, &event, stamp, launch->seen, is_last);
	return is_known;
}

/* --- both --------------------------------------------------------------------------------------------------------------- */

static uint64_t between(uint64_t value, uint64_t least, uint64_t most)
{
	uint64_t low = value < least ? least : value;

	return low > most ? most : low;
}

/* Whether it can have been then, as exactly as the clocks are known. An end after it was seen contradicts the clocks. */
static bool is_possible(const struct estimate *estimate, const struct ends_launch *launch, uint64_t error_ns)
{
	return launch->came <= launch->seen && estimate->end + error_ns >= launch->came;
}

static bool estimate_launch(struct gpu *gpu, const struct ends_launch *launch, struct estimate *estimate)
{
	bool is_known = launch->is_graph ? estimate_graph(&gpu->times, launch, estimate)
	                                 : estimate_kernel(&gpu->times, launch, estimate);

	return is_known && times_know_duration(&gpu->times, estimate->duration_ns) &&
	       is_possible(estimate, launch, gpu->times.offset.error_ns);
}

static bool all_are_exact(void)
{
	bool are = known->gpu_count > 0;

	for (unsigned int i = 0; i < known->gpu_count && are; i++)
		are = known->gpus[i].is_exact;
	return are;
}

bool ends_want_close_looks(void)
{
	return known && known->in_vain < IN_VAIN_MAX && !all_are_exact();
}

static void note_exactness(struct gpu *gpu)
{
	gpu->is_exact = gpu->times.has_offset && gpu->times.offset.error_ns <= EXACT_NS;
	if (all_are_exact())
		known->in_vain = 0;
	else if (known->in_vain < IN_VAIN_MAX)
		known->in_vain++;
}

/* It was on the GPU after it came and before it was seen to have ended. */
static struct estimate within(const struct estimate *estimate, const struct ends_launch *launch)
{
	uint64_t begin = between(estimate->begin, launch->came, launch->seen);

	return (struct estimate){
		.begin = begin,
		.end = between(estimate->end, begin, launch->seen),
		.duration_ns = between(estimate->duration_ns, 0, launch->seen - launch->came),
		.may_be_shorter = estimate->may_be_shorter,
	};
}

static struct estimate all_that_was_seen(const struct ends_launch *launch)
{
	return estimate_of(launch->came, launch->came < launch->seen ? launch->seen : launch->came);
}

struct ends_time ends_measure(const struct ends_launch *launch)
{
	struct gpu *gpu = gpu_of(launch->ring);
	struct estimate estimate;
	bool is_known = gpu && estimate_launch(gpu, launch, &estimate);

	if (gpu)
		note_exactness(gpu);
	estimate = is_known ? within(&estimate, launch) : all_that_was_seen(launch);
	return (struct ends_time){
		.duration_ns = estimate.duration_ns,
		.used_ns = gpu ? busy_add(&gpu->busy, estimate.begin, estimate.end) : estimate.end - estimate.begin,
		.is_known = is_known && !estimate.may_be_shorter,
	};
}
