#include "activity.h"

#include "base/clock.h"
#include "demangle.h"
#include "state/segment/find.h"

#include <stdlib.h>
#include <string.h>

#define NOT_MEASURED "they are measured only while somebody looks"
#define NOT_YET "it was not looked at for long enough"
#define TOO_MANY "its user has more programs than can be looked at at once"
#define OTHERS "functions that there was no room for"

/* --- rates -------------------------------------------------------------------------------------------------------- */

const struct row *activities_find(const struct activities *activities, const struct process *process,
                                  struct pci_address gpu)
{
	const struct row *found = NULL;

	for (size_t i = 0; i < activities->count && !found; i++) {
		const struct row *row = &activities->list[i];
		bool is_same = row->process->pid == process->pid && row->process->started == process->started &&
		               row->has_gpu && pci_address_equal(row->pci, gpu);

		found = is_same ? row : NULL;
	}
	return found;
}

/* After an exec a process counts anew: no rate is known. Before a context on a GPU, there were no launches there. */
static struct reading rate_since(const struct row *now, const struct row *before, struct reading span)
{
	struct reading ended = now->numbers[NUMBER_ENDED];
	struct reading ended_before = before ? before->numbers[NUMBER_ENDED] : (struct reading){.is_known = false};
	double more = ended.value - ended_before.value;
	bool is_known = span.is_known && span.value > 0 && ended.is_known && ended_before.is_known && more >= 0;

	return reading_if(is_known, more / span.value);
}

/* --- times -------------------------------------------------------------------------------------------------------- */

/* Without a context on a GPU, a program has done nothing there. */
static void take_times(struct row *row, const struct watched *watched, bool sees_borrowers)
{
	static const struct watched_gpu nothing;
	const struct watched_gpu *here = watched_find_gpu(watched, row->pci);
	const struct watched_gpu *times = here ? here : &nothing;
	double span = here ? times->span_ns : 1;

	row->is_presence = times->is_presence;
	row->why_no_times = here ? watched_why_unknown(here) : watched->why_unknown;
	if (!row->why_no_times && span <= 0)
		row->why_no_times = NOT_YET;
	if (!row->why_no_times) {
		row->numbers[NUMBER_BUSY] = reading_of(times->busy_ns / span);
		row->numbers[NUMBER_BUSY_ERROR] = reading_of(times->busy_error_ns / span);
		row->numbers[NUMBER_BUSY_TIME] = reading_of(times->all_busy_ns / 1e9);
		row->numbers[NUMBER_TPC_TIME] = reading_of(times->all_tpc_ns / 1e9);
		row->numbers[NUMBER_MEASURED_TIME] = reading_of(times->all_span_ns / 1e9);
		row->numbers[NUMBER_WAITED] = reading_if(watched->lends && sees_borrowers, times->waited_ns / 1e9);
		if (row->topology)
			row->numbers[NUMBER_TPC_SHARE] = reading_of(times->tpc_ns / span / row->topology->tpc_count);
	}
}

static void add_times(struct row *row, const struct watch_list *list)
{
	const struct watched *watched = watched_find(list, row->process);

	if (row->process->not_in_force)
		row->why_no_times = row->process->not_in_force;
	else if (!watched)
		row->why_no_times = list->functions_of == 0 ? TOO_MANY : NOT_MEASURED;
	else if (!watched->look)
		row->why_no_times = watched->why;
	else if (!watched->was_taken)
		row->why_no_times = NOT_YET;
	else
		take_times(row, watched, !list->misses_borrowers);
}

/* --- kernels ------------------------------------------------------------------------------------------------------ */

/* Of kernels in graphs, durations are samples. The total is the average times all instances. */
static bool describe_kernel(struct kernel_activity *kernel, const struct monitor_function *function, bool borrows)
{
	const struct durations *durations = &function->durations;
	const bool has_times = durations->count > 0;
	double average = durations_average(durations), instances = (double)function->instances;

	*kernel = (struct kernel_activity){
		.name = demangle(function->name ? function->name : OTHERS),
		.numbers = {
			[KERNEL_TOTAL] = reading_if(has_times, average * instances),
			[KERNEL_INSTANCES] = reading_of(instances),
			[KERNEL_TIMED] = reading_of((double)durations->count),
			[KERNEL_AVERAGE] = reading_if(has_times, average),
			[KERNEL_MEDIAN] = reading_if(has_times, (double)durations_median(durations)),
			[KERNEL_SHORTEST] = reading_if(has_times, (double)durations->min_ns),
			[KERNEL_LONGEST] = reading_if(has_times, (double)durations->max_ns),
			[KERNEL_OVERRUNS] = reading_if(borrows, (double)function->overruns),
			[KERNEL_DEVIATION] = reading_if(has_times, durations_deviation(durations)),
		}};
	return kernel->name != NULL;
}

/* Equal kernels have an order, too, and keep their places. */
static int compare_kernels(const void *first, const void *second)
{
	const struct kernel_activity *a = first, *b = second;
	int order = reading_compare(a->numbers[KERNEL_TOTAL], b->numbers[KERNEL_TOTAL]);

	if (order == 0)
		order = reading_compare(a->numbers[KERNEL_INSTANCES], b->numbers[KERNEL_INSTANCES]);
	return order != 0 ? order : strcmp(a->name, b->name);
}

static void share_out(struct kernel_activity *kernels, size_t count)
{
	double all = 0;

	for (size_t i = 0; i < count; i++)
		all += kernels[i].numbers[KERNEL_TOTAL].value;
	for (size_t i = 0; i < count; i++) {
		struct reading total = kernels[i].numbers[KERNEL_TOTAL];

		kernels[i].numbers[KERNEL_SHARE] = reading_if(total.is_known && all > 0, total.value / all);
	}
}

static int list_kernels(struct activities *now, struct error *error)
{
	const struct process *process = processes_find(&now->processes, now->kernels_of);
	const struct watched *watched = process ? watched_find(&now->watched, process) : NULL;
	bool is_whole = true;

	now->why_no_kernels = !watched ? NOT_MEASURED : watched->look ? NULL : watched->why;
	if (now->why_no_kernels)
		return 0;
	now->kernels = calloc(watched->functions.count + 1, sizeof *now->kernels);
	for (unsigned int i = 0; now->kernels && i < watched->functions.count; i++)
		is_whole &= describe_kernel(&now->kernels[now->kernel_count++], &watched->functions.list[i].all,
		                            watched->borrows);
	if (!now->kernels || !is_whole)
		return error_set(error, "no memory");
	share_out(now->kernels, now->kernel_count);
	qsort(now->kernels, now->kernel_count, sizeof *now->kernels, compare_kernels);
	return 0;
}

/* --- looks -------------------------------------------------------------------------------------------------------- */

static int add_row(struct activities *activities, const struct row *row, struct error *error)
{
	struct row *more = realloc(activities->list, (activities->count + 1) * sizeof *more);

	if (!more)
		return error_set(error, "no memory");
	activities->list = more;
	activities->list[activities->count++] = *row;
	return 0;
}

static int add_process(struct activities *now, const struct process *process, const struct activities *before,
                       struct error *error)
{
	struct row row = {.process = process};
	int result = 0;

	for (; result == 0 && row_find(&row, now->gpus); row.place++) {
		row.why_no_times = NOT_MEASURED;
		if (row.has_gpu)
			row.numbers[NUMBER_RATE] = rate_since(&row, activities_find(before, process, row.pci),
			                                      now->span);
		result = add_row(now, &row, error);
	}
	return result;
}

static void free_look(struct activities *activities)
{
	for (size_t i = 0; i < activities->kernel_count; i++)
		free(activities->kernels[i].name);
	free(activities->kernels);
	free(activities->list);
	processes_free(&activities->processes);
}

/* Times go on from look to look. A program is watched from the look that finds it. */
static int look_at_times(struct activities *now, struct error *error)
{
	now->watched.functions_of = now->kernels_of;
	watched_take(&now->watched);
	int result = watched_follow(&now->watched, &now->processes, error);

	for (size_t i = 0; i < now->count; i++)
		add_times(&now->list[i], &now->watched);
	if (result == 0 && now->kernels_of != 0)
		result = list_kernels(now, error);
	return result;
}

int activities_look(struct activities *activities, const struct topology_list *gpus, struct error *error)
{
	struct activities now = {.gpus = gpus, .kernels_of = activities->kernels_of, .why_no_kernels = NOT_MEASURED,
	                         .measures_times = activities->measures_times, .watched = activities->watched};
	int result = processes_collect(&now.processes, true, error);

	if (result < 0)
		return -1;
	now.at_ms = clock_ms();
	processes_ask_memory(&now.processes);
	if (activities->at_ms > 0)
		now.span = reading_of((now.at_ms - activities->at_ms) / 1000);
	for (size_t i = 0; result == 0 && i < now.processes.count; i++)
		result = add_process(&now, &now.processes.list[i], activities, error);
	if (result == 0 && now.measures_times)
		result = look_at_times(&now, error);
	activities->watched = now.watched;
	if (result == 0) {
		watched_begin_interval(&now.watched);
		free_look(activities);
		*activities = now;
	} else {
		free_look(&now);
	}
	return result;
}

int activities_check(const struct activities *activities, pid_t pid, struct error *error)
{
	struct segment segment;
	struct segment_revision revision;
	uint64_t number;

	if (pid == 0 || processes_find(&activities->processes, pid))
		return 0;
	if (segment_open(&segment, pid, NULL, error) == SEGMENT_FOUND) {
		bool is_whole = segment_read(&segment, &revision, &number);

		segment_close(&segment);
		error_set(error, "pid %d: %s", (int)pid, is_whole ? "it has just ended" : "its segment is damaged");
	}
	return -1;
}

void activities_keep_up(void *activities)
{
	watched_take(&((struct activities *)activities)->watched);
}

void activities_free(struct activities *activities)
{
	free_look(activities);
	watched_end(&activities->watched);
	*activities = (struct activities){.count = 0};
}
