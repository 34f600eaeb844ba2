#include "activity.h"

#include "base/clock.h"
#include "demangle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOT_MEASURED "they are measured only while somebody looks"
#define NOT_YET "it was not looked at for long enough"
#define TOO_MANY "its user has more programs than can be looked at at once"
#define OTHERS "functions that there was no room for"

/* --- numbers ------------------------------------------------------------------------------------------------------ */

struct reading activity_partition(const struct activity *activity, const struct topology_list *gpus)
{
	const struct topology *gpu = topology_find(gpus, activity->row.pci);
	struct reading tpcs = {.is_known = false};

	if (activity->row.has_gpu && activity->row.set)
		tpcs = reading_of(tpcset_count(activity->row.set));
	else if (activity->row.has_gpu && gpu)
		tpcs = reading_of(gpu->tpc_count);
	return tpcs;
}

const struct activity *activities_find(const struct activities *activities, const struct process *process,
                                       struct pci_address gpu)
{
	const struct activity *found = NULL;

	for (size_t i = 0; i < activities->count && !found; i++) {
		const struct row *row = &activities->list[i].row;
		bool is_same = row->process->pid == process->pid && row->process->started == process->started && row->has_gpu &&
		               pci_address_equal(row->pci, gpu);

		found = is_same ? &activities->list[i] : NULL;
	}
	return found;
}

/* A process that has executed another program counts anew, so its rate is not known then. Before its first context on a GPU,
 * it has launched nothing there. */
static struct reading rate_since(const struct activity *now, const struct activity *before, struct reading span)
{
	bool is_known = span.is_known && span.value > 0 && now->in_flight.is_known && before && before->in_flight.is_known &&
	                now->ended >= before->ended;

	return is_known ? reading_of((double)(now->ended - before->ended) / span.value) : (struct reading){.is_known = false};
}

/* --- times -------------------------------------------------------------------------------------------------------- */

/* On a GPU on which it has made no context, a program has done nothing. */
static void take_times(struct activity *activity, const struct watched *watched, const struct topology *gpu)
{
	static const struct watched_gpu nothing;
	const struct watched_gpu *here = watched_find_gpu(watched, activity->row.pci);
	const struct watched_gpu *times = here ? here : &nothing;
	double span = times->span_ns;

	activity->is_presence = times->is_presence;
	activity->why_no_times = here ? watched_why_unknown(here) : watched->why_unknown;
	if (!activity->why_no_times && here && span <= 0)
		activity->why_no_times = NOT_YET;
	if (!activity->why_no_times) {
		activity->busy = reading_of(here ? times->busy_ns / span : 0);
		activity->busy_error = reading_of(here ? times->busy_error_ns / span : 0);
		activity->time = reading_of(times->all_busy_ns / 1e9);
		activity->tpc_time = reading_of(times->all_tpc_ns / 1e9);
		activity->measured = reading_of(times->all_span_ns / 1e9);
		if (gpu)
			activity->tpcs = reading_of(here ? times->tpc_ns / span / gpu->tpc_count : 0);
	}
}

static void add_times(struct activity *activity, const struct watch_list *list, const struct topology *gpu)
{
	const struct watched *watched = watched_find(list, activity->row.process);

	if (activity->row.process->not_in_force)
		activity->why_no_times = activity->row.process->not_in_force;
	else if (!watched)
		activity->why_no_times = list->functions_of == 0 ? TOO_MANY : NOT_MEASURED;
	else if (!watched->look)
		activity->why_no_times = watched->why;
	else if (!watched->was_taken)
		activity->why_no_times = NOT_YET;
	else
		take_times(activity, watched, gpu);
}

/* --- kernels ------------------------------------------------------------------------------------------------------ */

/* Of kernels of graphs, durations are samples: the sum is that of all instances. */
static bool describe_kernel(struct kernel_activity *kernel, const struct function_sum *function)
{
	const struct durations *durations = &function->durations;

	*kernel = (struct kernel_activity){.name = demangle(function->name ? function->name : OTHERS),
	                                   .instances = function->instances,
	                                   .timed = durations->count};
	if (durations->count > 0) {
		kernel->average = reading_of(durations_average(durations));
		kernel->sum = reading_of(kernel->average.value * (double)kernel->instances);
		kernel->median = reading_of((double)durations_median(durations));
		kernel->shortest = reading_of((double)durations->min_ns);
		kernel->longest = reading_of((double)durations->max_ns);
		kernel->deviation = reading_of(durations_deviation(durations));
	}
	return kernel->name != NULL;
}

/* Those that are equal stay in an order, and so in their places. */
static int compare_kernels(const void *first, const void *second)
{
	const struct kernel_activity *a = first, *b = second;
	int order = (a->sum.value < b->sum.value) - (a->sum.value > b->sum.value);

	if (order == 0)
		order = (a->instances < b->instances) - (a->instances > b->instances);
	return order != 0 ? order : strcmp(a->name, b->name);
}

static void share_out(struct kernel_activity *kernels, size_t count)
{
	double all = 0;

	for (size_t i = 0; i < count; i++)
		all += kernels[i].sum.value;
	for (size_t i = 0; i < count; i++) {
		if (kernels[i].sum.is_known && all > 0)
			kernels[i].share = reading_of(kernels[i].sum.value / all);
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
		is_whole = describe_kernel(&now->kernels[now->kernel_count++], &watched->functions.list[i]) && is_whole;
	if (!now->kernels || !is_whole)
		return error_set(error, "no memory");
	share_out(now->kernels, now->kernel_count);
	qsort(now->kernels, now->kernel_count, sizeof *now->kernels, compare_kernels);
	return 0;
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

static struct activity activity_of(const struct row *row, const struct activities *before, struct reading span)
{
	struct activity activity = {.row = *row, .why_no_times = NOT_MEASURED};

	if (row->has_gpu) {
		struct kernels kernels = process_kernels(row->process, row->pci);

		activity.ended = kernels.count.ended;
		if (kernels.ended_are_known)
			activity.in_flight = reading_of((double)kernels.count.in_flight);
		activity.rate = rate_since(&activity, activities_find(before, row->process, row->pci), span);
	}
	return activity;
}

/* --- looks -------------------------------------------------------------------------------------------------------- */

static int add(struct activities *activities, const struct activity *activity, struct error *error)
{
	struct activity *more = realloc(activities->list, (activities->count + 1) * sizeof *more);

	if (!more)
		return error_set(error, "no memory");
	activities->list = more;
	activities->list[activities->count++] = *activity;
	return 0;
}

static int add_process(struct activities *now, const struct process *process, const struct activities *before,
                       struct error *error)
{
	struct row row = {.process = process};
	int result = 0;

	for (; result == 0 && !process->yields_to_descendants && row_find(&row); row.place++) {
		struct activity activity = activity_of(&row, before, now->span);

		result = add(now, &activity, error);
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

/* Times go on from look to look; a program is watched from the first look on that finds it. */
static int look_at_times(struct activities *now, struct error *error)
{
	now->watched.functions_of = now->kernels_of;
	watched_take(&now->watched);
	int result = watched_follow(&now->watched, &now->processes, error);

	for (size_t i = 0; i < now->count; i++)
		add_times(&now->list[i], &now->watched, topology_find(now->gpus, now->list[i].row.pci));
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
	if (activities->at_ms > 0)
		now.span = reading_of((now.at_ms - activities->at_ms) / 1000);
	for (size_t i = 0; result == 0 && i < now.processes.count; i++)
		result = add_process(&now, &now.processes.list[i], activities, error);
	if (result == 0 && now.measures_times)
		result = look_at_times(&now, error);
	activities->watched = now.watched;
	if (result == 0) {
		watched_begin(&now.watched);
		free_look(activities);
		*activities = now;
	} else {
		free_look(&now);
	}
	return result;
}

void activities_keep_up(struct activities *activities)
{
	watched_take(&activities->watched);
}

void activities_free(struct activities *activities)
{
	free_look(activities);
	watched_end(&activities->watched);
	*activities = (struct activities){.count = 0};
}
