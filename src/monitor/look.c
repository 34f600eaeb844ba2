#include "parts.h"
#include "state/kernels/counts_read.h"
#include "state/segment/layout.h"

#include "base/clock.h"
#include "base/proc.h"
#include "state/segment/edit.h"
#include "state/segment/lease.h"

#include <stdlib.h>
#include <string.h>

_Static_assert(LEASE_NS == LOOK_LEASE_MS * UINT64_C(1000000), "the same");

const char *look_gap_text(enum look_gap gap)
{
	static const char *const texts[] = {
#define GAP_TEXT(identifier, text) text,
		LOOK_GAPS(GAP_TEXT)
#undef GAP_TEXT
	};

	return texts[gap];
}

/* --- GPUs and their counts --------------------------------------------------------------------------------------------- */

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
		result |= gaps & LOOK_BIT(pairs[i].from) ? LOOK_BIT(pairs[i].to) : 0;
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
		struct watched_gpu *gpu = look_gpu_for(look, counts->pci);

		if (gpu) {
			gpu->taken.kernels = is_first || counts->ended < gpu->ended ? 0 : counts->ended - gpu->ended;
			gpu->taken.gaps |= gaps_of_counts(counts->gaps);
			gpu->ended = counts->ended;
			gpu->in_flight = counts->in_flight;
		}
	}
}

/* --- times ------------------------------------------------------------------------------------------------------------- */

/* The clock's error is added to the end. */
static void tell_kernel(struct look *look, const struct watched_event *found, struct look_function *function,
                        uint64_t duration)
{
	const struct timestamps_event *event = &found->event;
	struct times *times = &found->ring->gpu->times;
	const struct segment_partition *own = segment_find(&look->revision, found->ring->gpu->taken.pci);
	bool is_borrowed = own && event->tpcs > tpcset_count(&own->set);
	uint64_t end;

	if (is_borrowed && times_know_duration(times, duration) && duration > look->limit_ns)
		function->overruns++;
	if (look->kernels && times_convert(times, event->timestamp_ns, event->launched_ns, &end))
		look->kernels[look->kernel_count++] = (struct look_kernel){
			.pci = found->ring->gpu->taken.pci,
			.launched_ns = event->launched_ns - (uint64_t)look->clock_offset,
			.ended_ns = end + times->offset.error_ns - (uint64_t)look->clock_offset,
			.is_borrowed = is_borrowed,
		};
}

static void add_kernel(struct look *look, const struct watched_event *found, uint64_t now)
{
	const struct timestamps_event *event = &found->event;
	struct watched_gpu *gpu = found->ring->gpu;
	struct times_kernel kernel = {
		.stream = event->stream,
		.launched_ns = event->launched_ns,
		.timestamp_ns = event->timestamp_ns,
		.tpcs = event->tpcs,
	};
	uint64_t duration;

	if (event->state == TIMESTAMPS_RUNNING) {
		bool was_launched = event->launched_ns <= look->counted_at;

		gpu->running += was_launched;
		if (!was_launched || gpu->in_flight > 0)
			times_add_running(&gpu->times, &kernel, now);
	} else {
		struct look_function *function = look_functions_find(look, found->ring, event->function);

		function->instances++;
		look_graphs_before(look, found, &kernel);
		if (times_add(&gpu->times, &kernel, &duration)) {
			if (times_know_duration(&gpu->times, duration))
				durations_add(&function->durations, duration);
			gpu->taken.timed++;
			if (look->limit_ns > 0)
				tell_kernel(look, found, function, duration);
		}
	}
}

/* A profiler writes its own release over ours: its kernels end, and have no timestamp. Once may be by chance, since the
 * GPU writes the one before the other. */
static void find_profiler(struct watched_gpu *gpu)
{
	bool is_short = gpu->running > gpu->in_flight && !(gpu->taken.gaps & (LOOK_BIT(LOOK_NO_SLOTS) | LOOK_BIT(LOOK_REFUSED)));

	if (is_short && gpu->was_short)
		gpu->taken.gaps |= LOOK_BIT(LOOK_PROFILER);
	gpu->was_short = is_short;
}

static void give_up(struct look *look, struct watched_ring *ring)
{
	(void)look;
	if (ring->gpu->taken.gaps & LOOK_BIT(LOOK_PROFILER) && ring->gpu->in_flight == 0)
		timestamps_give_up(&ring->reader);
}

/* Meanwhile, kernels got no timestamps: what is known of that stretch is not all, so it is left out. */
static void leave_out_lapse(struct look *look, struct watched_gpu *gpu)
{
	if (look->has_lapsed) {
		times_lose(&gpu->times, look->renewed_at);
		if (gpu->taken.kernels > gpu->taken.timed + gpu->taken.lost)
			gpu->taken.lost = gpu->taken.kernels - gpu->taken.timed;
	}
}

static void finish(struct look *look, struct watched_gpu *gpu, uint64_t now)
{
	struct times_taken taken;
	/* Also if none has ended just now: otherwise, only takes in which nothing happens would be known. */
	bool has_ended = gpu->taken.kernels > 0 || gpu->taken.timed > 0 || now - gpu->found_at < LOOK_IDLE_NS;

	leave_out_lapse(look, gpu);
	times_take(&gpu->times, now, &taken);
	find_profiler(gpu);
	gpu->taken.gaps |= look->gaps | (!gpu->has_ring && gpu->taken.gaps == 0 ? LOOK_BIT(LOOK_NO_MEMORY) : 0);
	gpu->taken.gaps |= has_ended && taken.error_ns != UINT64_MAX && !times_are_exact(&taken) ? LOOK_BIT(LOOK_CLOCKS) : 0;
	gpu->taken.span_ns = taken.span_ns;
	gpu->taken.busy_ns = taken.busy_ns;
	gpu->taken.tpc_ns = taken.tpc_ns;
	gpu->taken.busy_error_ns = taken.busy_error_ns;
	gpu->taken.error_ns = taken.error_ns;
	gpu->taken.is_time_known = gpu->taken.gaps == 0 && !gpu->misses_graph &&
	                           (taken.error_ns != UINT64_MAX || gpu->taken.kernels == 0);
}

static void begin_take(struct look *look)
{
	look->gaps = look->is_locked ? LOOK_BIT(LOOK_LOCKED) : 0;
	look->found_count = 0;
	look->nodes_read = 0;
	free(look->kernels);
	look->kernels = NULL;
	look->kernel_count = 0;
	for (unsigned int i = 0; i < look->gpu_count; i++) {
		struct watched_gpu *gpu = look->gpus[i];

		gpu->taken = (struct look_gpu){.pci = gpu->taken.pci};
		gpu->running = 0;
		gpu->misses_graph = false;
		gpu->has_ring = false;
	}
	for (unsigned int i = 0; i < look->function_count; i++) {
		look->functions[i].instances = 0;
		look->functions[i].durations = (struct durations){.count = 0};
		look->functions[i].overruns = 0;
	}
}

/* Without memory, none is told. */
static void begin_telling(struct look *look)
{
	uint64_t number;

	if (look->limit_ns > 0 && segment_read(&look->editor.segment, &look->revision, &number))
		look->kernels = calloc(look->found_count + 1, sizeof *look->kernels);
}

/* What was launched before the counts were read, and has no timestamp afterwards, was in flight when they were read. */
static void take(struct look *look)
{
	begin_take(look);
	look_rings_find(look, false);
	look_rings_each(look, look_events_ended);
	look_clocks_compare_events(look, 0);
	look_clocks_compare_closely(look);
	look->counted_at = look_now(look);
	take_counts(look, false);
	uint64_t now = look_now(look);
	size_t before = look->found_count;

	look_rings_each(look, look_events_all);
	look_clocks_compare_events(look, before);
	look_rings_each(look, look_functions_read);
	for (size_t i = 0; i < look->found_count; i++) {
		if (look->found[i].event.state == TIMESTAMPS_GRAPH_LAUNCHED)
			look_graphs_launched(look, &look->found[i]);
	}
	begin_telling(look);
	for (size_t i = 0; i < look->found_count; i++) {
		if (look->found[i].event.state != TIMESTAMPS_GRAPH_LAUNCHED)
			add_kernel(look, &look->found[i], now);
	}
	look_rings_each(look, look_graphs_take);
	for (unsigned int i = 0; i < look->gpu_count; i++)
		finish(look, look->gpus[i], now);
	look_rings_each(look, give_up);
	/* Of the many programs that this process may look at, one at a time has that much memory. */
	free(look->found);
	look->found = NULL;
	look->found_room = 0;
}

/* --- looking ----------------------------------------------------------------------------------------------------------- */

static int renew(struct look *look, struct error *error)
{
	struct error why = {.reason = ""};
	uint64_t now = look_now(look);

	if (!segment_may_write(&look->editor.segment))
		return error_set_code(error, NVTASKSET_ERROR_NOT_PERMITTED, "pid %d: another user's process: only its counts may be read",
		                      (int)look->editor.pid);
	look->has_lapsed = now - look->renewed_at >= LEASE_NS;
	look->renewed_at = now;
	look->is_locked = lease_renew(&look->editor.segment, now, &why) < 0 && why.code == NVTASKSET_ERROR_BUSY;
	/* Of the lock of another editor, which soon gives it back, the next take learns. */
	if (why.reason[0] != '\0' && !look->is_locked && !segment_has_moved(&look->editor.segment)) {
		error_reword(&why, "pid %d: %.280s", (int)look->editor.pid, why.reason);
		return error_pass(error, &why);
	}
	return 0;
}

static int begin(struct look *look, struct error *error)
{
	look->user = proc_status(look->editor.pid, "Uid:", UINT64_MAX);
	if (!look_take_memory(look, sizeof *look) || !look_functions_add(look, NULL))
		return error_set_code(error, NVTASKSET_ERROR_NO_MEMORY, "pid %d: no memory is left for it", (int)look->editor.pid);
	look->clock_offset = process_clock_offset(look->editor.pid);
	look->began = look_now(look);
	look_rings_find(look, true);
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

void look_tell_kernels(struct look *look, uint64_t limit_ns)
{
	look->limit_ns = limit_ns;
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
		.kernel_count = look->kernel_count,
		.kernels = look->kernels,
	};
	for (unsigned int i = 0; i < look->gpu_count; i++)
		times->gpus[i] = look->gpus[i]->taken;
	return 0;
}

void look_end(struct look *look)
{
	if (!look)
		return;
	for (unsigned int i = 0; i < SEGMENT_AREAS; i++)
		look_rings_leave(look, i);
	for (unsigned int i = 0; i < look->gpu_count; i++) {
		shared_clock_leave(look->gpus[i]->times.shared);
		times_close(&look->gpus[i]->times);
		free(look->gpus[i]);
	}
	for (unsigned int i = 0; i < look->function_count; i++)
		free((void *)look->functions[i].name);
	free(look->functions);
	free(look->kernels);
	free(look->found);
	look_return_memory(look, look->taken);
	editor_close(&look->editor);
	free(look);
}
