#include "look.h"

#include "area.h"
#include "base/proc_status.h"
#include "base/process_clock.h"
#include "editor.h"
#include "layout.h"
#include "lease.h"
#include "node_stamps.h"
#include "replays.h"
#include "stamps_read.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

_Static_assert(LEASE_NS == LOOK_LEASE_MS * UINT64_C(1000000), "the same");

/* Clocks are compared anew when they are not known so well. */
#define GOOD_ERROR_NS 1000
#define COMPARE_NS UINT64_C(2000000)
#define COMPARE_EVERY_NS UINT64_C(10000000)

/* Where they are not known at all, it waits longer for an end, if there was one lately. */
#define COARSE_ERROR_NS 100000
#define COMPARE_LONG_NS UINT64_C(120000000)
#define COMPARE_LONG_EVERY_NS UINT64_C(500000000)
#define COMPARE_PAUSE_US 50
#define COMPARE_IDLE_NS UINT64_C(5000000000)
#define COMPARE_RUNNING 8

#define GRAPHS_MAX 256 /* of one ring */
#define NODES_MAX (16 * STAMPS_NODES) /* that are read in one take: a hostile process names any number */
#define FUNCTIONS_MAX 4096
#define BIT(gap) (UINT32_C(1) << (gap))

const char *look_gap_text(enum look_gap gap)
{
	static const char *const texts[] = {
#define GAP_TEXT(identifier, text) text,
		LOOK_GAPS(GAP_TEXT)
#undef GAP_TEXT
	};

	return texts[gap];
}

/* A GPU of the process's. */
struct gpu {
	struct look_gpu taken;
	struct times times;
	uint64_t ended;             /* kernels, when they were last read */
	uint64_t running, in_flight; /* of the current take: by stamps, by counts */
	uint64_t found_at;          /* the last time when there was something to see; 0: never */
	bool misses_graph;          /* in this take, one was launched that does not tell its end */
	bool was_short;             /* in the last take, more kernels had no stamp than were in flight */
	bool has_ring;
};

struct graph {
	uint64_t exec, first, last, end;
	unsigned int kernels, tpcs;
	struct node_order order;
	uint64_t seen_end;    /* the stamp of the last end that was taken */
	uint64_t sampled;     /* the last stamp of a node that was taken */
	uint64_t polled_end, polled_at; /* the stamp of the latest node, when that was looked at closely, and when that was */
	uint64_t idle_number; /* the launches before it had ended by the last take */
	struct replays replays;
};

/* What a ring calls a function, and where that is in the look's list. */
struct name {
	uint64_t function;
	unsigned int index;
};

#define NAMES_ROOM (2 * STAMPS_FUNCTIONS)

struct ring {
	struct stamps_reader reader;
	struct gpu *gpu;
	uint64_t scanned_at; /* when the last scan began */
	unsigned int names_read;
	struct name names[NAMES_ROOM]; /* a hash table; function 0: free */
	struct graph *graphs[GRAPHS_MAX];
	unsigned int graph_count;
};

/* An event of the current take. */
struct found {
	struct ring *ring;
	struct stamps_event event;
	uint64_t unseen, seen;
};

struct look {
	struct editor editor;
	int64_t clock_offset;
	uint64_t user; /* the process's */
	struct {
		uint64_t inode;
		const struct stamps_memory *memory;
		struct ring *rings[COUNTS_PLACES];
	} areas[COUNTS_AREAS];
	uint32_t gaps; /* of all GPUs, in this take */
	struct counts counts;
	struct gpu *gpus[LOOK_GPUS];
	unsigned int gpu_count;
	struct look_function *functions;
	unsigned int function_count, function_room;
	struct found *found;
	size_t found_count, found_room;
	struct node_stamps nodes; /* of the graph that is looked at */
	uint64_t began, compared_at, comparisons, counted_at;
	uint64_t renewed_at;     /* the lease */
	bool has_lapsed;         /* it had ended when this take began */
	unsigned int nodes_read; /* in this take */
};

static uint64_t now_of(const struct look *look)
{
	return process_clock_ns() + (uint64_t)look->clock_offset;
}

/* --- GPUs and their counts -------------------------------------------------------------------------------------- */

/* NULL if there is no memory, or no room, as only a hostile process needs. */
static struct gpu *gpu_for(struct look *look, struct pci_address pci)
{
	struct gpu *found = NULL;

	for (unsigned int i = 0; i < look->gpu_count && !found; i++)
		found = pci_address_equal(look->gpus[i]->taken.pci, pci) ? look->gpus[i] : NULL;
	if (!found && look->gpu_count < LOOK_GPUS) {
		found = calloc(1, sizeof *found);
		if (found) {
			found->taken.pci = pci;
			times_open(&found->times, &times_usual, look->began);
			if (!pci_address_equal(pci, (struct pci_address){.bus = 0}))
				times_share(&found->times, shared_clock_join(pci, look->user), (uint64_t)look->clock_offset);
			look->gpus[look->gpu_count++] = found;
		}
	}
	return found;
}

static uint32_t gaps_of_counts(uint32_t gaps)
{
	static const struct {
		enum counts_gap from;
		enum look_gap to;
	} pairs[] = {
		{COUNTS_OFF, LOOK_OFF},         {COUNTS_NO_MEMORY, LOOK_NO_MEMORY}, {COUNTS_NO_SLOTS, LOOK_NO_SLOTS},
		{COUNTS_REFUSED, LOOK_REFUSED}, {COUNTS_OLDER, LOOK_OLDER},         {COUNTS_CLOSED, LOOK_CLOSED},
	};
	uint32_t result = 0;

	for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
		result |= gaps & BIT(pairs[i].from) ? BIT(pairs[i].to) : 0;
	return result;
}

static void take_counts(struct look *look, bool is_first)
{
	/* Where our own limits are in the way, the next time may know more. */
	if (counts_read(&look->editor.segment, look->editor.pid, &look->counts, NULL) < 0)
		look->counts = (struct counts){.count = 0};
	look->gaps |= gaps_of_counts(look->counts.gaps);
	for (unsigned int i = 0; i < look->counts.count; i++) {
		const struct counts_of_gpu *counts = &look->counts.gpus[i];
		struct gpu *gpu = gpu_for(look, counts->pci);

		if (gpu) {
			gpu->taken.kernels = is_first || counts->ended < gpu->ended ? 0 : counts->ended - gpu->ended;
			gpu->taken.gaps |= gaps_of_counts(counts->gaps);
			gpu->ended = counts->ended;
			gpu->in_flight = counts->in_flight;
		}
	}
}

/* --- functions -------------------------------------------------------------------------------------------------- */

/* Index 0 is that of all functions without a name. False if there is no memory. */
static bool add_function(struct look *look, const char *name)
{
	if (look->function_count == look->function_room) {
		unsigned int room = look->function_room ? 2 * look->function_room : 16;
		struct look_function *functions = realloc(look->functions, room * sizeof *functions);

		if (!functions)
			return false;
		look->functions = functions;
		look->function_room = room;
	}
	char *copy = name ? strdup(name) : NULL;

	if (name && !copy)
		return false;
	memset(&look->functions[look->function_count], 0, sizeof look->functions[0]);
	look->functions[look->function_count++].name = copy;
	return true;
}

static unsigned int index_of(struct look *look, const char *name)
{
	unsigned int index = 1;

	while (index < look->function_count && strcmp(look->functions[index].name, name) != 0)
		index++;
	if (index == look->function_count && (index >= FUNCTIONS_MAX || !add_function(look, name)))
		index = 0;
	return index;
}

/* Where a function stands in the ring's table, or would stand. It is never full. */
static struct name *locate(struct ring *ring, uint64_t function)
{
	size_t at = (size_t)(function * UINT64_C(0x9e3779b97f4a7c15) >> 32) % NAMES_ROOM;

	while (ring->names[at].function != 0 && ring->names[at].function != function)
		at = (at + 1) % NAMES_ROOM;
	return &ring->names[at];
}

static void read_names(struct look *look, struct ring *ring)
{
	unsigned int count = stamps_names_count(ring->reader.ring);
	char text[STAMPS_NAME_MAX + 1];
	uint64_t function;

	for (; ring->names_read < count; ring->names_read++) {
		if (stamps_read_name(ring->reader.ring, ring->names_read, &function, text) && function != 0)
			*locate(ring, function) = (struct name){.function = function, .index = index_of(look, text)};
	}
}

static struct look_function *function_of(struct look *look, struct ring *ring, uint64_t function)
{
	return &look->functions[function != 0 ? locate(ring, function)->index : 0];
}

/* --- areas and rings -------------------------------------------------------------------------------------------- */

static bool is_known(const struct stamps_memory *memory)
{
	return memory && atomic_load(&memory->magic) == STAMPS_MAGIC && memory->version == STAMPS_VERSION &&
	       memory->size == sizeof *memory;
}

static void free_ring(struct ring *ring)
{
	for (unsigned int i = 0; ring && i < ring->graph_count; i++)
		free(ring->graphs[i]);
	free(ring);
}

static void leave_area(struct look *look, unsigned int number)
{
	for (unsigned int i = 0; i < COUNTS_PLACES; i++) {
		free_ring(look->areas[number].rings[i]);
		look->areas[number].rings[i] = NULL;
	}
	if (look->areas[number].memory)
		munmap((void *)look->areas[number].memory, sizeof *look->areas[number].memory);
	look->areas[number].memory = NULL;
	look->areas[number].inode = 0;
}

/* After an exec, the areas are others. */
static void find_area(struct look *look, int directory, unsigned int number)
{
	const struct segment_area *area = &look->editor.segment.memory->stamps[number];
	uint64_t inode = atomic_load_explicit(&area->inode, memory_order_acquire);

	if (inode != look->areas[number].inode) {
		leave_area(look, number);
		look->areas[number].inode = inode;
		if (inode != 0)
			look->areas[number].memory = area_map(directory, atomic_load(&area->file), inode,
			                                      sizeof *look->areas[number].memory);
	}
	if (inode != 0 && !is_known(look->areas[number].memory))
		look->gaps |= BIT(LOOK_CLOSED);
}

static void find_areas(struct look *look)
{
	char path[32];

	snprintf(path, sizeof path, "/proc/%d/fd", (int)look->editor.pid);
	int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	for (unsigned int i = 0; i < COUNTS_AREAS; i++)
		find_area(look, directory, i);
	if (directory >= 0)
		close(directory);
}

/* A ring that was not there when we began to look is read from its first launch on. */
static struct ring *open_ring(struct look *look, const struct stamps *stamps, bool is_first)
{
	struct gpu *gpu = gpu_for(look, stamps->pci);
	struct ring *ring = gpu ? calloc(1, sizeof *ring) : NULL;

	if (ring) {
		ring->gpu = gpu;
		ring->reader.ring = stamps;
		if (is_first)
			stamps_reader_begin(&ring->reader, stamps);
	}
	return ring;
}

static uint32_t gaps_of_ring(const struct stamps *stamps)
{
	uint64_t gaps = atomic_load(&stamps->gaps);

	return (gaps >> STAMPS_NO_SLOTS & 1 ? BIT(LOOK_NO_SLOTS) : 0) | (gaps >> STAMPS_REFUSED & 1 ? BIT(LOOK_REFUSED) : 0) |
	       (gaps >> STAMPS_SLOT_USED & 1 ? BIT(LOOK_PROFILER) : 0);
}

static void set_shared(struct gpu *gpu, bool is_shared_by_mps)
{
	gpu->times.calibration = is_shared_by_mps ? times_under_mps : times_usual;
	gpu->taken.is_presence |= !is_shared_by_mps;
}

static void find_rings(struct look *look, unsigned int number, bool is_first)
{
	const struct stamps_memory *memory = look->areas[number].memory;

	for (unsigned int i = 0; is_known(memory) && i < COUNTS_PLACES; i++) {
		struct ring **ring = &look->areas[number].rings[i];

		if (!*ring && atomic_load(&memory->rings[i].magic) == STAMPS_MAGIC)
			*ring = open_ring(look, &memory->rings[i], is_first);
		if (*ring) {
			(*ring)->gpu->has_ring = true;
			(*ring)->gpu->taken.gaps |= gaps_of_ring(&memory->rings[i]);
			set_shared((*ring)->gpu, atomic_load(&memory->rings[i].is_shared_by_mps));
		}
	}
}

typedef void ring_action(struct look *look, struct ring *ring);

static void for_rings(struct look *look, ring_action *act)
{
	for (unsigned int area = 0; area < COUNTS_AREAS; area++) {
		for (unsigned int i = 0; i < COUNTS_PLACES; i++) {
			if (look->areas[area].rings[i])
				act(look, look->areas[area].rings[i]);
		}
	}
}

/* --- what came -------------------------------------------------------------------------------------------------- */

/* Without memory, it gets no time. */
static void keep(struct look *look, const struct found *found)
{
	if (look->found_count == look->found_room) {
		size_t room = look->found_room ? 2 * look->found_room : 1024;
		struct found *list = realloc(look->found, room * sizeof *list);

		if (!list)
			return;
		look->found = list;
		look->found_room = room;
	}
	look->found[look->found_count++] = *found;
}

struct scan {
	struct look *look;
	struct ring *ring;
	uint64_t began;
	bool keeps_running;
};

static void on_event(const struct stamps_event *event, void *data)
{
	const struct scan *scan = data;
	bool could_see = event->was_looked_at && event->launched_ns < scan->ring->scanned_at;

	if (event->state != STAMPS_RUNNING || scan->keeps_running)
		keep(scan->look, &(const struct found){
					 .ring = scan->ring,
					 .event = *event,
					 .unseen = could_see ? scan->ring->scanned_at : 0,
					 .seen = event->state == STAMPS_ENDED ? now_of(scan->look) : scan->began,
				 });
}

static void scan(struct look *look, struct ring *ring, bool keeps_running, unsigned int running)
{
	struct scan how = {look, ring, now_of(look), keeps_running};
	uint64_t lost = stamps_scan(&ring->reader, running, on_event, &how);

	ring->scanned_at = how.began;
	ring->gpu->taken.lost += lost;
	if (lost > 0)
		times_lose(&ring->gpu->times, stamps_oldest(&ring->reader));
}

static void scan_ended(struct look *look, struct ring *ring)
{
	scan(look, ring, false, STAMPS_CELLS);
}

static void scan_some(struct look *look, struct ring *ring)
{
	scan(look, ring, false, COMPARE_RUNNING);
}

static void scan_all(struct look *look, struct ring *ring)
{
	scan(look, ring, true, STAMPS_CELLS);
}

/* --- comparing clocks ------------------------------------------------------------------------------------------- */

static void compare_with(struct look *look, struct gpu *gpu, uint64_t launched, uint64_t stamp, uint64_t unseen, uint64_t seen)
{
	look->comparisons += times_compare(&gpu->times, &(const struct times_kernel){.launched_ns = launched, .stamp_ns = stamp},
	                                   unseen, seen);
}

static void compare(struct look *look, size_t from)
{
	for (size_t i = from; i < look->found_count; i++) {
		const struct found *found = &look->found[i];

		if (found->event.state == STAMPS_ENDED)
			compare_with(look, found->ring->gpu, found->event.launched_ns, found->event.stamp_ns, found->unseen,
			             found->seen);
	}
}

static bool is_within(const struct gpu *gpu, uint64_t now, uint64_t most_ns)
{
	struct clock_offset offset;

	return times_clock(&gpu->times, now, &offset) && offset.error_ns <= most_ns;
}

/* Of the GPUs on which something ended lately. */
static bool all_are_within(const struct look *look, uint64_t now, uint64_t most_ns)
{
	bool all = true;

	for (unsigned int i = 0; i < look->gpu_count; i++)
		all = all && (now - look->gpus[i]->found_at >= COMPARE_IDLE_NS || is_within(look->gpus[i], now, most_ns));
	return all;
}

/* The stamps of nodes compare clocks, too. */
static void poll_graph(struct look *look, const struct ring *ring, struct graph *graph)
{
	uint64_t before = graph->polled_at;
	struct stamps_node_event last;

	graph->polled_at = now_of(look);
	if (graph->order.latest != 0 && stamps_read_node(ring->reader.ring, graph->order.latest, &last)) {
		if (last.stamp_ns != graph->polled_end && last.stamp_ns != 0 && graph->polled_end != 0 && before != 0)
			compare_with(look, ring->gpu, 0, last.stamp_ns, before, now_of(look));
		graph->polled_end = last.stamp_ns;
	}
}

static void poll_graphs(struct look *look, struct ring *ring)
{
	for (unsigned int i = 0; i < ring->graph_count; i++)
		poll_graph(look, ring, ring->graphs[i]);
}

/* How long to wait for an end, so that the moment is known at which it can be seen: for long only where the clocks are not
 * known at all, and not for each program that this process looks at. */
static uint64_t time_to_wait(struct look *look, uint64_t now)
{
	static _Atomic uint64_t last;
	uint64_t time = process_clock_ns(), before = atomic_load(&last), wait = 0;
	bool has_ended = look->found_count > 0;

	for (size_t i = 0; i < look->found_count; i++)
		look->found[i].ring->gpu->found_at = now;
	if (now - look->compared_at < COMPARE_EVERY_NS || all_are_within(look, now, GOOD_ERROR_NS))
		wait = 0;
	else if (!all_are_within(look, now, COARSE_ERROR_NS) && time - before >= COMPARE_LONG_EVERY_NS &&
	         atomic_compare_exchange_strong(&last, &before, time))
		wait = COMPARE_LONG_NS;
	else if (has_ended)
		wait = COMPARE_NS;
	return wait;
}

/* Looks all the time, for a while. A program that is nearly idle is waited for, and less closely. What the clocks say now
 * takes longer to find out than a look, so that nobody asks while there is nothing new. */
static void compare_closely(struct look *look)
{
	uint64_t begin = now_of(look), now = begin, wait = time_to_wait(look, begin);
	bool is_done = false;

	if (wait == 0)
		return;
	for_rings(look, poll_graphs);
	while (now - begin < wait && !is_done) {
		size_t before = look->found_count;
		uint64_t comparisons = look->comparisons;
		bool is_long = now - begin >= COMPARE_NS;

		if (is_long)
			usleep(COMPARE_PAUSE_US);
		for_rings(look, scan_some);
		for_rings(look, poll_graphs);
		compare(look, before);
		now = now_of(look);
		if (is_long || look->comparisons != comparisons)
			is_done = all_are_within(look, now, is_long ? COARSE_ERROR_NS : GOOD_ERROR_NS);
	}
	look->compared_at = now;
}

/* --- graphs ----------------------------------------------------------------------------------------------------- */

/* NULL if there are too many, or there is no memory. */
static struct graph *graph_for(struct ring *ring, uint64_t exec)
{
	struct graph *found = NULL;

	for (unsigned int i = 0; i < ring->graph_count && !found; i++)
		found = ring->graphs[i]->exec == exec ? ring->graphs[i] : NULL;
	if (!found && ring->graph_count < GRAPHS_MAX) {
		found = calloc(1, sizeof *found);
		if (found) {
			found->exec = exec;
			ring->graphs[ring->graph_count++] = found;
		}
	}
	return found;
}

/* A hostile process names any numbers: the work is that of all cells at most. */
static void set_nodes(struct graph *graph, uint64_t first, uint64_t last, uint64_t end)
{
	if (last >= STAMPS_IS_NODE)
		last = 0;
	if (first > last || last - first >= STAMPS_NODES)
		first = last + 1;
	if (end < last || end - last >= STAMPS_NODES)
		end = last;
	if (graph->first != first || graph->last != last) {
		graph->order = (struct node_order){.front = 0};
		graph->polled_end = 0;
	}
	graph->first = first;
	graph->last = last;
	graph->end = end;
}

/* Of an instance that does not tell its end, kernels are lost; those that it launched before have ended or never will. */
static void graph_launched(const struct found *found)
{
	struct graph *graph = graph_for(found->ring, found->event.stream);

	if (graph && found->event.first == 0) {
		found->ring->gpu->taken.lost += found->event.tpcs;
		found->ring->gpu->misses_graph = true;
		graph->replays = (struct replays){.first = 0};
		set_nodes(graph, 1, 0, 0);
	} else if (graph) {
		set_nodes(graph, found->event.first, found->event.last, found->event.end);
		graph->kernels = found->event.tpcs;
		if (!replays_launch(&graph->replays, found->event.launched_ns))
			found->ring->gpu->taken.lost++;
	}
}

static void take_functions(struct look *look, struct ring *ring, const struct graph *graph, uint64_t replays)
{
	uint64_t function = 0;

	for (uint64_t number = graph->last + 1; number <= graph->end && look->nodes_read < NODES_MAX; number++, look->nodes_read++) {
		uint64_t nodes = stamps_read_function(ring->reader.ring, number, graph->exec, &function);

		if (nodes > 0)
			function_of(look, ring, function)->instances += nodes * replays;
	}
}

/* Those that have a cell are samples, once for each of their stamps. */
static void take_nodes(struct look *look, struct ring *ring, struct graph *graph)
{
	const struct node_stamps *nodes = &look->nodes;
	uint64_t duration;

	for (unsigned int i = 0; i < nodes->count; i++) {
		const struct stamps_node_event *node = &nodes->nodes[i];

		if (node->stamp_ns > graph->sampled && node_stamps_duration(nodes, i, &ring->gpu->times.calibration, &duration)) {
			durations_add(&function_of(look, ring, node->function)->durations, duration);
			ring->gpu->taken.timed++;
		}
	}
	graph->sampled = nodes->nodes[nodes->count - 1].stamp_ns;
}

/* One kernel alone has nothing in front. */
static const struct times_ways *ways_of(const struct ring *ring, const struct graph *graph)
{
	const struct times_calibration *calibration = &ring->gpu->times.calibration;

	return graph->kernels == 1 ? &calibration->plain : &calibration->graph;
}

/* Whether a launch has ended since the last one that was taken. */
static bool read_nodes(struct look *look, const struct ring *ring, struct graph *graph)
{
	bool waits = graph->replays.first < graph->replays.next && graph->first <= graph->last;
	struct stamps_node_event latest;
	bool may_have = waits && (graph->order.latest == 0 ||
	                          !stamps_read_node(ring->reader.ring, graph->order.latest, &latest) ||
	                          latest.stamp_ns > graph->seen_end);

	if (!may_have || look->nodes_read >= NODES_MAX)
		return false;
	/* Some may have been launched since it was seen that nothing is in flight. */
	bool is_idle = ring->gpu->in_flight == 0 && replays_after(&graph->replays, look->counted_at) == graph->replays.next;
	uint64_t watched = graph->order.latest;

	look->nodes_read += (unsigned int)(graph->last - graph->first + 1);
	bool has_end = node_stamps_read(&look->nodes, ring->reader.ring, graph->exec, graph->first, graph->last, is_idle,
	                                &graph->order) &&
	               look->nodes.end > graph->seen_end;

	if (graph->order.latest != watched)
		graph->polled_end = 0;
	return has_end;
}

/* It could not be seen before the first launch that waits had come to the GPU. If the end is that of another launch, this
 * contradicts what is known, and is not believed. */
static void compare_graph(const struct look *look, const struct ring *ring, const struct graph *graph)
{
	const struct replays *replays = &graph->replays;
	const struct times_calibration *calibration = &ring->gpu->times.calibration;
	uint64_t launched = replays->launched[replays->first % REPLAYS_WAITING];

	times_compare(&ring->gpu->times, &(const struct times_kernel){.stamp_ns = look->nodes.end},
	              launched + calibration->latency_least_ns + calibration->plain.release_ns, now_of(look));
}

static void take_end(struct look *look, struct ring *ring, struct graph *graph, uint64_t now)
{
	struct gpu *gpu = ring->gpu;
	const struct times_ways *ways = ways_of(ring, graph);
	uint64_t end;

	compare_graph(look, ring, graph);
	if (times_convert(&gpu->times, look->nodes.end, now, &end)) {
		graph->tpcs = look->nodes.tpcs;
		graph->seen_end = look->nodes.end;
		uint64_t replays = replays_see_end(&graph->replays, &gpu->times, ways, end - ways->release_ns,
		                                   node_stamps_length(&look->nodes, &gpu->times.calibration),
		                                   gpu->in_flight == 0, graph->tpcs);

		take_functions(look, ring, graph, replays);
		take_nodes(look, ring, graph);
	}
}

/* Nothing was in flight: what was launched before has ended. The stamp may come a little later; after another take it is not
 * waited for any more. */
static void take_idle(struct look *look, struct ring *ring, struct graph *graph)
{
	uint64_t dropped = replays_drop(&graph->replays, graph->idle_number);

	take_functions(look, ring, graph, dropped);
	ring->gpu->taken.lost += dropped * graph->kernels;
	graph->idle_number = replays_after(&graph->replays, look->counted_at);
}

static void take_graph(struct look *look, struct ring *ring, struct graph *graph, uint64_t now)
{
	struct gpu *gpu = ring->gpu;

	if (read_nodes(look, ring, graph))
		take_end(look, ring, graph, now);
	if (gpu->in_flight == 0)
		take_idle(look, ring, graph);
	else
		replays_see_running(&graph->replays, &gpu->times, ways_of(ring, graph), now, graph->tpcs);
}

static void take_graphs(struct look *look, struct ring *ring)
{
	uint64_t now = now_of(look);

	for (unsigned int i = 0; i < ring->graph_count; i++)
		take_graph(look, ring, ring->graphs[i], now);
}

/* --- times ------------------------------------------------------------------------------------------------------ */

static void add_kernel(struct look *look, const struct found *found, uint64_t now)
{
	const struct stamps_event *event = &found->event;
	struct gpu *gpu = found->ring->gpu;
	const struct times_kernel kernel = {
		.stream = event->stream,
		.launched_ns = event->launched_ns,
		.stamp_ns = event->stamp_ns,
		.tpcs = event->tpcs,
	};
	uint64_t duration;

	if (event->state == STAMPS_RUNNING) {
		bool was_launched = event->launched_ns <= look->counted_at;

		gpu->running += was_launched;
		if (!was_launched || gpu->in_flight > 0)
			times_add_running(&gpu->times, &kernel, now);
	} else {
		struct look_function *function = function_of(look, found->ring, event->function);

		function->instances++;
		if (times_add(&gpu->times, &kernel, &duration)) {
			if (times_know_duration(&gpu->times, duration))
				durations_add(&function->durations, duration);
			gpu->taken.timed++;
		}
	}
}

/* A profiler writes its own release over ours: its kernels end, and have no stamp. Once may be by chance, since the GPU
 * writes the one before the other. */
static void find_profiler(struct gpu *gpu)
{
	bool is_short = gpu->running > gpu->in_flight && !(gpu->taken.gaps & (BIT(LOOK_NO_SLOTS) | BIT(LOOK_REFUSED)));

	if (is_short && gpu->was_short)
		gpu->taken.gaps |= BIT(LOOK_PROFILER);
	gpu->was_short = is_short;
}

static void give_up(struct look *look, struct ring *ring)
{
	(void)look;
	if (ring->gpu->taken.gaps & BIT(LOOK_PROFILER) && ring->gpu->in_flight == 0)
		stamps_give_up(&ring->reader);
}

/* Meanwhile, kernels got no stamps: what is known of that stretch is not all, so it is left out. */
static void leave_out_lapse(struct look *look, struct gpu *gpu)
{
	if (look->has_lapsed) {
		times_lose(&gpu->times, look->renewed_at);
		if (gpu->taken.kernels > gpu->taken.timed + gpu->taken.lost)
			gpu->taken.lost = gpu->taken.kernels - gpu->taken.timed;
	}
}

static void finish(struct look *look, struct gpu *gpu, uint64_t now)
{
	struct times_taken taken;
	/* Also if none has ended just now: otherwise, only takes in which nothing happens would be known. */
	bool has_ended = gpu->taken.kernels > 0 || gpu->taken.timed > 0 || now - gpu->found_at < COMPARE_IDLE_NS;

	leave_out_lapse(look, gpu);
	times_take(&gpu->times, now, &taken);
	find_profiler(gpu);
	gpu->taken.gaps |= look->gaps | (!gpu->has_ring && gpu->taken.gaps == 0 ? BIT(LOOK_NO_MEMORY) : 0);
	gpu->taken.gaps |= has_ended && taken.error_ns != UINT64_MAX && !times_are_exact(&taken) ? BIT(LOOK_CLOCKS) : 0;
	gpu->taken.span_ns = taken.span_ns;
	gpu->taken.busy_ns = taken.busy_ns;
	gpu->taken.tpc_ns = taken.tpc_ns;
	gpu->taken.busy_error_ns = taken.busy_error_ns;
	gpu->taken.error_ns = taken.error_ns;
	gpu->taken.is_time_known = gpu->taken.gaps == 0 && !gpu->misses_graph && (taken.error_ns != UINT64_MAX || gpu->taken.kernels == 0);
}

static void begin_take(struct look *look)
{
	look->gaps = 0;
	look->found_count = 0;
	look->nodes_read = 0;
	for (unsigned int i = 0; i < look->gpu_count; i++) {
		struct gpu *gpu = look->gpus[i];

		gpu->taken = (struct look_gpu){.pci = gpu->taken.pci};
		gpu->running = 0;
		gpu->misses_graph = false;
		gpu->has_ring = false;
	}
	for (unsigned int i = 0; i < look->function_count; i++) {
		look->functions[i].instances = 0;
		look->functions[i].durations = (struct durations){.count = 0};
	}
}

static void find_all_rings(struct look *look, bool is_first)
{
	find_areas(look);
	for (unsigned int i = 0; i < COUNTS_AREAS; i++)
		find_rings(look, i, is_first);
}

static void scan_names(struct look *look, struct ring *ring)
{
	read_names(look, ring);
}

/* What was launched before the counts were read, and has no stamp afterwards, was in flight when they were read. */
static void take(struct look *look)
{
	begin_take(look);
	find_all_rings(look, false);
	for_rings(look, scan_ended);
	compare(look, 0);
	compare_closely(look);
	look->counted_at = now_of(look);
	take_counts(look, false);
	uint64_t now = now_of(look);
	size_t before = look->found_count;

	for_rings(look, scan_all);
	compare(look, before);
	for_rings(look, scan_names);
	for (size_t i = 0; i < look->found_count; i++) {
		if (look->found[i].event.state == STAMPS_GRAPH_LAUNCHED)
			graph_launched(&look->found[i]);
	}
	for (size_t i = 0; i < look->found_count; i++) {
		if (look->found[i].event.state != STAMPS_GRAPH_LAUNCHED)
			add_kernel(look, &look->found[i], now);
	}
	for_rings(look, take_graphs);
	for (unsigned int i = 0; i < look->gpu_count; i++)
		finish(look, look->gpus[i], now);
	for_rings(look, give_up);
}

/* --- looking ---------------------------------------------------------------------------------------------------- */

static int renew(struct look *look, struct error *error)
{
	struct error why = {.reason = ""};
	uint64_t now = now_of(look);

	if (!segment_may_write(&look->editor.segment))
		return error_set_code(error, NVTASKSET_ERROR_NOT_PERMITTED, "pid %d: another user's process: only its counts may be read",
		                      (int)look->editor.pid);
	look->has_lapsed = now - look->renewed_at >= LEASE_NS;
	look->renewed_at = now;
	if (lease_renew(&look->editor.segment, now, &why) < 0 && !segment_has_moved(&look->editor.segment)) {
		error_reword(&why, "pid %d: %.280s", (int)look->editor.pid, why.reason);
		return error_pass(error, &why);
	}
	return 0;
}

static int begin(struct look *look, struct error *error)
{
	if (!add_function(look, NULL))
		return error_set_code(error, NVTASKSET_ERROR_NO_MEMORY, "no memory");
	look->clock_offset = process_clock_offset(look->editor.pid);
	look->user = proc_status_of(look->editor.pid, "Uid:", UINT64_MAX);
	look->began = now_of(look);
	find_all_rings(look, true);
	take_counts(look, true);
	return renew(look, error);
}

struct look *look_begin(pid_t pid, struct error *error)
{
	struct look *look = calloc(1, sizeof *look);

	if (!look) {
		error_set_code(error, NVTASKSET_ERROR_NO_MEMORY, "no memory");
	} else if (editor_open(&look->editor, pid, error) != SEGMENT_FOUND) {
		free(look);
		look = NULL;
	} else if (begin(look, error) < 0) {
		look_end(look);
		look = NULL;
	}
	return look;
}

int look_take(struct look *look, struct look_times *times, struct error *error)
{
	if (editor_has_ended(&look->editor))
		return error_set_code(error, NVTASKSET_ERROR_ENDED, "pid %d: has ended", (int)look->editor.pid);
	if (editor_follow(&look->editor, error) < 0 || renew(look, error) < 0)
		return -1;
	take(look);
	*times = (struct look_times){
		.gaps = look->gaps,
		.gpu_count = look->gpu_count,
		.function_count = look->function_count,
		.functions = look->functions,
	};
	for (unsigned int i = 0; i < look->gpu_count; i++)
		times->gpus[i] = look->gpus[i]->taken;
	return 0;
}

void look_end(struct look *look)
{
	if (!look)
		return;
	for (unsigned int i = 0; i < COUNTS_AREAS; i++)
		leave_area(look, i);
	for (unsigned int i = 0; i < look->gpu_count; i++) {
		shared_clock_leave(look->gpus[i]->times.shared);
		times_close(&look->gpus[i]->times);
		free(look->gpus[i]);
	}
	for (unsigned int i = 0; i < look->function_count; i++)
		free((void *)look->functions[i].name);
	free(look->functions);
	free(look->found);
	editor_close(&look->editor);
	free(look);
}
