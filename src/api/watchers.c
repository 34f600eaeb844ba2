#include "api/internal.h"

#include "base/clock.h"
#include "monitor/function_sums.h"
#include "monitor/monitor.h"

#include <stdlib.h>

_Static_assert(NVTASKSET_LOOK_MS == MONITOR_TAKE_MS, "the same");
_Static_assert(NVTASKSET_LOOK_LAST_MS == MONITOR_LEASE_MS, "the same");

/* The work on one GPU since the watcher was opened. */
struct gpu_sum {
	uint64_t span_ns, busy_ns, tpc_ns, timed, lost, error_ns;
	uint32_t gaps;
	bool is_listed, is_known, is_presence; /* in the last look; is_presence: in any look */
};

struct nvtaskset_watcher {
	const struct nvtaskset_topology *topology;
	pid_t pid;
	struct monitor *look;
	uint64_t opened_at, looked_at; /* 0: no look yet */
	uint32_t gaps;                 /* of all GPUs */
	struct gpu_sum gpus[TOPOLOGY_GPUS_MAX];
	struct function_sums functions;
};

/* --- handles ------------------------------------------------------------------------------------------------------ */

int nvtaskset_watcher_open(struct nvtaskset_watcher **watcher, const struct nvtaskset_topology *topology, pid_t pid,
                           struct nvtaskset_error *error)
{
	struct nvtaskset_watcher *opened;

	if (pid < 1)
		return error_set_code(inside_error(error), NVTASKSET_ERROR_INVALID, "pid %d: not a process id",
		                      (int)pid);
	opened = calloc(1, sizeof *opened);
	if (!opened)
		return error_set_code(inside_error(error), NVTASKSET_ERROR_NO_MEMORY, "no memory");
	opened->topology = topology;
	opened->opened_at = process_clock_ns();
	opened->look = monitor_begin(pid, NULL, inside_error(error));
	if (!opened->look) {
		free(opened);
		return -1;
	}
	*watcher = opened;
	return 0;
}

void nvtaskset_watcher_close(struct nvtaskset_watcher *watcher)
{
	if (watcher) {
		monitor_end(watcher->look);
		function_sums_free(&watcher->functions);
	}
	free(watcher);
}

/* --- looking ------------------------------------------------------------------------------------------------------ */

/* Unknown times are left out. */
static void add_gpu(struct gpu_sum *sum, const struct monitor_gpu *came)
{
	sum->is_listed = true;
	sum->is_known = came->is_time_known;
	sum->is_presence |= came->is_presence;
	sum->gaps |= came->gaps;
	sum->error_ns = came->error_ns;
	sum->timed += came->timed;
	sum->lost += came->lost;
	if (came->is_time_known) {
		sum->span_ns += came->span_ns;
		sum->busy_ns += came->busy_ns;
		sum->tpc_ns += came->tpc_ns;
	}
}

static void add_times(struct nvtaskset_watcher *watcher, const struct monitor_times *times)
{
	const struct topology_list *list = &watcher->topology->list;

	watcher->looked_at = process_clock_ns();
	watcher->gaps = times->gaps;
	for (unsigned int gpu = 0; gpu < list->count; gpu++) {
		watcher->gpus[gpu].gaps = 0;
		for (unsigned int i = 0; i < times->gpu_count; i++) {
			if (pci_address_equal(times->gpus[i].pci, list->gpus[gpu].pci))
				add_gpu(&watcher->gpus[gpu], &times->gpus[i]);
		}
	}
	function_sums_add(&watcher->functions, times);
}

int nvtaskset_watcher_look(struct nvtaskset_watcher *watcher, unsigned int milliseconds, struct nvtaskset_error *error)
{
	double until = clock_ms() + milliseconds, left = milliseconds;
	struct monitor_times times;
	int result = monitor_take(watcher->look, &times, NULL, inside_error(error));

	if (result >= 0)
		add_times(watcher, &times);
	while (result == 0 && left > 0) {
		clock_pause_us((left < MONITOR_TAKE_MS ? (long)left : MONITOR_TAKE_MS) * 1000);
		result = monitor_take(watcher->look, &times, NULL, inside_error(error));
		if (result >= 0)
			add_times(watcher, &times);
		left = until - clock_ms();
	}
	return result == 0 ? 0 : -1;
}

/* --- times -------------------------------------------------------------------------------------------------------- */

const char *nvtaskset_time_gap_text(unsigned int gap)
{
	return gap < MONITOR_GAP_COUNT ? monitor_gap_text((enum monitor_gap)gap) : NULL;
}

/* On a GPU without a context of the process, the process has done nothing. */
static struct nvtaskset_times times_on(const struct nvtaskset_watcher *watcher, const struct gpu_sum *sum)
{
	uint64_t elapsed = watcher->looked_at > watcher->opened_at ? watcher->looked_at - watcher->opened_at : 0;
	struct nvtaskset_times times = {
		.elapsed_ns = elapsed,
		.span_ns = sum->span_ns,
		.busy_ns = sum->busy_ns,
		.tpc_ns = sum->tpc_ns,
		.error_ns = sum->error_ns,
		.timed = sum->timed,
		.lost = sum->lost,
		.gaps = sum->gaps,
		.is_known = sum->is_known && sum->span_ns > 0,
		.is_presence = sum->is_presence,
	};

	if (!sum->is_listed) {
		times.span_ns = watcher->gaps == 0 ? elapsed : 0;
		times.error_ns = NVTASKSET_UNKNOWN;
		times.gaps = watcher->gaps;
		times.is_known = times.span_ns > 0;
	}
	if (!times.is_known)
		times.busy_ns = times.tpc_ns = NVTASKSET_UNKNOWN;
	return times;
}

int nvtaskset_watcher_times(const struct nvtaskset_watcher *watcher, unsigned int gpu, struct nvtaskset_times *times,
                            struct nvtaskset_error *error)
{
	if (!api_gpu(watcher->topology, gpu, inside_error(error)))
		return -1;
	struct nvtaskset_times filled = times_on(watcher, &watcher->gpus[gpu]);

	return api_fill(times, &filled, sizeof filled, inside_error(error));
}

/* --- functions ---------------------------------------------------------------------------------------------------- */

unsigned int nvtaskset_watcher_function_count(const struct nvtaskset_watcher *watcher)
{
	return watcher->functions.count;
}

static uint64_t rounded(double ns)
{
	return (uint64_t)(ns + 0.5);
}

int nvtaskset_watcher_function(const struct nvtaskset_watcher *watcher, unsigned int number,
                               struct nvtaskset_function *function, struct nvtaskset_error *error)
{
	if (number >= watcher->functions.count)
		return error_set_code(inside_error(error), NVTASKSET_ERROR_INVALID, "function %u: there are %u", number,
		                      watcher->functions.count);
	const struct monitor_function *sum = &watcher->functions.list[number].all;
	const struct durations *durations = &sum->durations;
	bool is_known = durations->count > 0;
	double average = durations_average(durations);
	struct nvtaskset_function filled = {
		.name = sum->name,
		.instances = sum->instances,
		.timed = durations->count,
		.total_ns = is_known ? rounded(average * (double)sum->instances) : NVTASKSET_UNKNOWN,
		.average_ns = is_known ? rounded(average) : NVTASKSET_UNKNOWN,
		.median_ns = is_known ? durations_median(durations) : NVTASKSET_UNKNOWN,
		.min_ns = is_known ? durations->min_ns : NVTASKSET_UNKNOWN,
		.max_ns = is_known ? durations->max_ns : NVTASKSET_UNKNOWN,
		.deviation_ns = is_known ? rounded(durations_deviation(durations)) : NVTASKSET_UNKNOWN,
	};

	return api_fill(function, &filled, sizeof filled, inside_error(error));
}
