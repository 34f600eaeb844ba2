#include "parts.h"
#include "state/segment/layout.h"

#include "base/clock.h"
#include "base/proc.h"
#include "state/segment/edit.h"
#include "state/segment/lease.h"

#include <stdlib.h>
#include <string.h>

_Static_assert(LEASE_NS == MONITOR_LEASE_MS * UINT64_C(1000000), "the same");

const char *monitor_gap_text(enum monitor_gap gap)
{
	static const char *const texts[] = {
#define GAP_TEXT(identifier, text) text,
		MONITOR_GAPS(GAP_TEXT)
#undef GAP_TEXT
	};

	return texts[gap];
}

/* --- GPUs and their counts ---------------------------------------------------------------------------------------- */

static uint32_t gaps_of_counts(uint32_t gaps)
{
	static const struct {
		enum counts_gap from;
		enum monitor_gap to;
	} pairs[] = {
	    {COUNTS_OFF, MONITOR_OFF},           {COUNTS_NO_MEMORY, MONITOR_NO_MEMORY},
	    {COUNTS_NO_SLOTS, MONITOR_NO_SLOTS}, {COUNTS_REFUSED, MONITOR_REFUSED},
	    {COUNTS_OLDER, MONITOR_OLDER},       {COUNTS_CLOSED, MONITOR_CLOSED},
	};
	uint32_t result = 0;

	for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
		result |= gaps & MONITOR_BIT(pairs[i].from) ? MONITOR_BIT(pairs[i].to) : 0;
	return result;
}

static void take_counts(struct monitor *monitor, bool is_first)
{
	/* Where our own limits are in the way, the next time may know more. */
	if (counts_read(&monitor->editor.segment, monitor->editor.pid, &monitor->counts, NULL) < 0)
		monitor->counts = (struct counts){.count = 0};
	monitor->gaps |= gaps_of_counts(monitor->counts.gaps);
	for (unsigned int i = 0; i < monitor->counts.count; i++) {
		const struct counts_of_gpu *counts = &monitor->counts.gpus[i];
		struct watched_gpu *gpu = monitor_gpu_for(monitor, counts->pci);

		if (gpu) {
			gpu->taken.kernels = is_first || counts->ended < gpu->ended ? 0 : counts->ended - gpu->ended;
			gpu->taken.gaps |= gaps_of_counts(counts->gaps);
			gpu->ended = counts->ended;
			gpu->in_flight = counts->in_flight;
		}
	}
}

/* --- times -------------------------------------------------------------------------------------------------------- */

/* Whether a kernel can use more TPCs than the process's own. */
static bool is_borrowed(const struct monitor *monitor, const struct watched_gpu *gpu, unsigned int tpcs)
{
	const struct segment_partition *own =
	    monitor->has_revision ? revision_find_partition(&monitor->revision, gpu->taken.pci) : NULL;

	return own && tpcs > tpcset_count(&own->set);
}

static void add_kernel(struct monitor *monitor, const struct watched_event *found, uint64_t now)
{
	const struct timestamps_event *event = &found->event;
	struct watched_gpu *gpu = found->ring->gpu;
	struct times_kernel kernel = {
		.stream = event->stream,
		.launched_ns = event->launched_ns,
		.timestamp_ns = event->timestamp_ns,
		.tpcs = event->tpcs,
		.grid = event->grid,
	};
	uint64_t duration;
	bool is_placed;

	if (event->state == TIMESTAMPS_RUNNING) {
		bool was_launched = event->launched_ns <= monitor->counted_at;

		gpu->running += was_launched;
		if (!was_launched || gpu->in_flight > 0)
			times_add_running(&gpu->times, &kernel, now);
	} else {
		struct monitor_function *function = monitor_functions_find(monitor, found->ring, event->function);

		function->instances++;
		kernel.function = (unsigned int)(function - monitor->functions);
		kernel.is_borrowed = is_borrowed(monitor, gpu, event->tpcs);
		monitor_graphs_before(monitor, found, &kernel);
		is_placed = times_add(&gpu->times, &kernel, &duration);
		gpu->taken.unplaced += !is_placed;
		if (is_placed) {
			if (times_know_duration(&gpu->times, duration)) {
				durations_add(&function->durations, duration);
				function->overruns += kernel.is_borrowed && monitor->limit_ns > 0 &&
				                      duration > monitor->limit_ns;
			}
			gpu->taken.timed++;
		}
	}
}

/* A profiler writes its own release over ours: kernels end without a timestamp. Once may be by chance, since the GPU
 * does not write count and timestamp at once. */
static void find_profiler(struct watched_gpu *gpu)
{
	bool is_short = gpu->running > gpu->in_flight &&
	                !(gpu->taken.gaps & (MONITOR_BIT(MONITOR_NO_SLOTS) | MONITOR_BIT(MONITOR_REFUSED)));

	if (is_short && gpu->was_short)
		gpu->taken.gaps |= MONITOR_BIT(MONITOR_PROFILER);
	gpu->was_short = is_short;
}

static void give_up(struct monitor *monitor, struct watched_ring *ring)
{
	(void)monitor;
	if (ring->gpu->taken.gaps & MONITOR_BIT(MONITOR_PROFILER) && ring->gpu->in_flight == 0)
		timestamps_give_up(&ring->reader);
}

/* In a lapse kernels got no timestamps: the stretch is known in part only, and is left out. */
static void leave_out_lapse(struct monitor *monitor, struct watched_gpu *gpu)
{
	if (monitor->has_lapsed) {
		times_lose(&gpu->times, monitor->renewed_at);
		if (gpu->taken.kernels > gpu->taken.timed + gpu->taken.lost)
			gpu->taken.lost = gpu->taken.kernels - gpu->taken.timed;
	}
}

/* Without memory, no interval is told. */
static void tell_intervals(struct watched_gpu *gpu)
{
	size_t bytes = gpu->times.count * sizeof *gpu->times.intervals;
	struct times_interval *copy = bytes > 0 ? malloc(bytes) : NULL;

	gpu->taken.begin_ns = gpu->times.begin;
	if (copy) {
		memcpy(copy, gpu->times.intervals, bytes);
		gpu->taken.intervals = copy;
		gpu->taken.interval_count = gpu->times.count;
	}
}

static void finish(struct monitor *monitor, struct watched_gpu *gpu, uint64_t now)
{
	struct times_taken taken;
	/* Also without an end just now: otherwise, only takes without events would be known. */
	bool has_ended = gpu->taken.kernels > 0 || gpu->taken.timed > 0 || now - gpu->found_at < MONITOR_IDLE_NS;

	leave_out_lapse(monitor, gpu);
	if (monitor->tells)
		tell_intervals(gpu);
	times_take(&gpu->times, now, &taken);
	find_profiler(gpu);
	gpu->taken.gaps |=
	    monitor->gaps | (!gpu->has_ring && gpu->taken.gaps == 0 ? MONITOR_BIT(MONITOR_NO_MEMORY) : 0);
	gpu->taken.gaps |=
	    has_ended && taken.error_ns != UINT64_MAX && !times_are_exact(&taken) ? MONITOR_BIT(MONITOR_CLOCKS) : 0;
	gpu->taken.span_ns = taken.span_ns;
	gpu->taken.busy_ns = taken.busy_ns;
	gpu->taken.tpc_ns = taken.tpc_ns;
	gpu->taken.busy_error_ns = taken.busy_error_ns;
	gpu->taken.error_ns = taken.error_ns;
	gpu->taken.is_time_known = gpu->taken.gaps == 0 && !gpu->misses_graph &&
	                           (taken.error_ns != UINT64_MAX || gpu->taken.kernels == 0);
}

static void begin_take(struct monitor *monitor)
{
	monitor->gaps = monitor->is_locked ? MONITOR_BIT(MONITOR_LOCKED) : 0;
	monitor->found_count = 0;
	monitor->nodes_read = 0;
	for (unsigned int i = 0; i < monitor->gpu_count; i++) {
		struct watched_gpu *gpu = monitor->gpus[i];

		gpu->taken = (struct monitor_gpu){.pci = gpu->taken.pci};
		gpu->running = 0;
		gpu->misses_graph = false;
		gpu->has_ring = false;
	}
	for (unsigned int i = 0; i < monitor->function_count; i++) {
		monitor->functions[i].instances = 0;
		monitor->functions[i].durations = (struct durations){.count = 0};
		monitor->functions[i].overruns = 0;
	}
}

/* A launch before the read of the counts, and without a timestamp afterwards, was in flight at the read. An edit among
 * the events is in the revision, read afterwards. */
static void take(struct monitor *monitor)
{
	begin_take(monitor);
	monitor_rings_find(monitor, false);
	monitor_rings_each(monitor, monitor_events_ended);
	monitor_clocks_compare_events(monitor, 0);
	monitor_clocks_compare_closely(monitor);
	monitor->counted_at = process_clock_ns();
	take_counts(monitor, false);
	uint64_t now = process_clock_ns();
	size_t before = monitor->found_count;
	uint64_t number;

	monitor_rings_each(monitor, monitor_events_all);
	monitor_clocks_compare_events(monitor, before);
	monitor_rings_each(monitor, monitor_functions_read);
	for (size_t i = 0; i < monitor->found_count; i++) {
		if (monitor->found[i].event.state == TIMESTAMPS_GRAPH_LAUNCHED)
			monitor_graphs_launched(monitor, &monitor->found[i]);
	}
	if (monitor->tells)
		segment_read_events(&monitor->editor.segment, &monitor->events);
	monitor->has_revision = monitor->tells && segment_read(&monitor->editor.segment, &monitor->revision, &number);
	for (size_t i = 0; i < monitor->found_count; i++) {
		if (monitor->found[i].event.state != TIMESTAMPS_GRAPH_LAUNCHED)
			add_kernel(monitor, &monitor->found[i], now);
	}
	monitor_rings_each(monitor, monitor_graphs_take);
	for (unsigned int i = 0; i < monitor->gpu_count; i++)
		finish(monitor, monitor->gpus[i], now);
	monitor_rings_each(monitor, give_up);
	/* At a time, a single look of this process has as much memory. */
	free(monitor->found);
	monitor->found = NULL;
	monitor->found_room = 0;
}

/* --- looking ------------------------------------------------------------------------------------------------------ */

static int renew(struct monitor *monitor, struct error *error)
{
	struct error why = {.reason = ""};
	uint64_t now = process_clock_ns();

	if (!segment_may_write(&monitor->editor.segment))
		return error_set_code(error, NVTASKSET_ERROR_NOT_PERMITTED,
		                      "pid %d: another user's process: only its counts may be read",
		                      (int)monitor->editor.pid);
	monitor->has_lapsed = now - monitor->renewed_at >= LEASE_NS;
	monitor->renewed_at = now;
	monitor->is_locked = lease_renew(&monitor->editor.segment, now, &why) < 0 && why.code == NVTASKSET_ERROR_BUSY;
	/* The lock of another editor soon comes back: no error. */
	if (why.reason[0] != '\0' && !monitor->is_locked && !segment_has_moved(&monitor->editor.segment)) {
		error_reword(&why, "pid %d: %.280s", (int)monitor->editor.pid, why.reason);
		return error_pass(error, &why);
	}
	return 0;
}

static int begin_look(struct monitor *monitor, struct error *error)
{
	monitor->user = proc_status(monitor->editor.pid, "Uid:", UINT64_MAX);
	if (!monitor_reserve_memory(monitor, sizeof *monitor) || !monitor_functions_add(monitor, NULL))
		return error_set_code(error, NVTASKSET_ERROR_NO_MEMORY, "pid %d: no memory is left for it",
		                      (int)monitor->editor.pid);
	monitor->began = process_clock_ns();
	monitor_rings_find(monitor, true);
	take_counts(monitor, true);
	segment_read_events(&monitor->editor.segment, &monitor->events);
	return renew(monitor, error);
}

struct monitor *monitor_begin(pid_t pid, struct purse *purse, struct error *error)
{
	struct monitor *monitor = calloc(1, sizeof *monitor);

	if (!monitor) {
		error_set_code(error, NVTASKSET_ERROR_NO_MEMORY, "no memory");
	} else if (editor_open(&monitor->editor, pid, purse, error) != SEGMENT_FOUND) {
		free(monitor);
		monitor = NULL;
	} else if (begin_look(monitor, error) < 0) {
		monitor_end(monitor);
		monitor = NULL;
	} else {
		monitor->editor.segment.purse = NULL;
	}
	return monitor;
}

void monitor_tell(struct monitor *monitor, bool tells, uint64_t limit_ns)
{
	monitor->tells = tells;
	monitor->limit_ns = limit_ns;
}

int monitor_take(struct monitor *monitor, struct monitor_times *times, struct purse *purse, struct error *error)
{
	bool has_ended = editor_has_ended(&monitor->editor);
	int result = 0;

	monitor->editor.segment.purse = purse;
	if (has_ended)
		error_set_code(error, NVTASKSET_ERROR_ENDED, "pid %d: has ended", (int)monitor->editor.pid);
	else if (editor_follow(&monitor->editor, error) < 0 || renew(monitor, error) < 0)
		result = -1;

	if (result == 0)
		take(monitor);
	monitor->editor.segment.purse = NULL;
	if (result < 0)
		return -1;
	*times = (struct monitor_times){
		.gaps = monitor->gaps,
		.gpu_count = monitor->gpu_count,
		.function_count = monitor->function_count,
		.functions = monitor->functions,
		.revision = monitor->has_revision ? &monitor->revision : NULL,
		.events = monitor->tells ? &monitor->events : NULL,
	};
	for (unsigned int i = 0; i < monitor->gpu_count; i++)
		times->gpus[i] = monitor->gpus[i]->taken;
	return has_ended;
}

void monitor_end(struct monitor *monitor)
{
	if (!monitor)
		return;
	for (unsigned int i = 0; i < SEGMENT_AREAS; i++)
		monitor_rings_leave(monitor, i);
	for (unsigned int i = 0; i < monitor->gpu_count; i++) {
		shared_clock_leave(monitor->gpus[i]->times.shared);
		times_close(&monitor->gpus[i]->times);
		free(monitor->gpus[i]);
	}
	for (unsigned int i = 0; i < monitor->function_count; i++)
		free((void *)monitor->functions[i].name);
	free(monitor->functions);
	free(monitor->found);
	monitor_return_memory(monitor, monitor->reserved);
	editor_close(&monitor->editor);
	free(monitor);
}
