#include "document.h"

#include "show/json.h"

static json_t *number_or_null(struct reading reading)
{
	return reading.is_known ? json_real(reading.value) : json_null();
}

/* A hostile program says anything. */
static json_int_t integer_of(double value)
{
	return value < 0x1p63 ? (json_int_t)value : INT64_MAX;
}

static json_t *integer_or_null(struct reading reading)
{
	return reading.is_known ? json_integer(integer_of(reading.value)) : json_null();
}

static json_t *set_or_null(const struct tpcset *set)
{
	char list[TPCSET_TEXT];

	return set ? json_string(tpcset_format_list(set, list)) : json_null();
}

static json_t *on_gpu(const struct activity *activity, const struct topology_list *gpus)
{
	return json_joined(json_gpu(activity->row.pci, gpus),
	                   json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:b, s:s?}", "tpc_list", set_or_null(activity->row.set),
	                             "kernels_per_second", number_or_null(activity->rate), "in_flight",
	                             integer_or_null(activity->in_flight), "busy", number_or_null(activity->busy), "busy_error",
	                             number_or_null(activity->busy_error), "tpc_share", number_or_null(activity->tpcs), "busy_seconds", number_or_null(activity->time), "presence",
	                             activity->is_presence, "why_no_times", activity->why_no_times));
}

/* The rows of one process, which stand together. `next` gets the first row behind them. */
static json_t *one_process(const struct activities *activities, size_t from, size_t *next)
{
	const struct process *process = activities->list[from].row.process;
	json_t *array = json_array();
	bool complete = true;

	for (*next = from; *next < activities->count && activities->list[*next].row.process == process; ++*next) {
		if (activities->list[*next].row.has_gpu)
			complete = json_append(array, on_gpu(&activities->list[*next], activities->gpus)) && complete;
	}
	json_t *object = json_pack("{s:i, s:I, s:s, s:s, s:s?}", "pid", (int)process->pid, "uid", (json_int_t)process->uid, "user",
	                           process->user, "command", process->command, "not_in_force", process->not_in_force);

	object = json_joined(object, json_time(&process->revision, &process->time));
	return json_joined(object, json_pack("{s:o}", "gpus", json_finish(array, complete)));
}

static json_t *processes(const struct activities *activities)
{
	json_t *array = json_array();
	bool complete = true;

	for (size_t i = 0, next; i < activities->count; i = next) {
		pid_t pid = activities->list[i].row.process->pid;
		json_t *process = one_process(activities, i, &next);

		if (activities->kernels_of == 0 || activities->kernels_of == pid)
			complete = json_append(array, process) && complete;
		else
			json_decref(process);
	}
	return json_finish(array, complete);
}

static json_t *one_kernel(const struct kernel_activity *kernel)
{
	return json_pack("{s:s, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "name", kernel->name, "instances",
	                 (json_int_t)kernel->instances, "timed", (json_int_t)kernel->timed, "share",
	                 number_or_null(kernel->share), "total_ns", number_or_null(kernel->sum), "average_ns",
	                 number_or_null(kernel->average), "median_ns", number_or_null(kernel->median), "min_ns",
	                 number_or_null(kernel->shortest), "max_ns", number_or_null(kernel->longest), "deviation_ns",
	                 number_or_null(kernel->deviation));
}

static json_t *kernels(const struct activities *activities)
{
	json_t *array = json_array();
	bool complete = true;

	for (size_t i = 0; i < activities->kernel_count; i++)
		complete = json_append(array, one_kernel(&activities->kernels[i])) && complete;
	return json_finish(array, complete);
}

json_t *document_of(const struct activities *activities)
{
	bool has_kernels = activities->kernels_of != 0 && !activities->why_no_kernels;

	return json_pack("{s:s, s:I, s:o, s:o, s:o, s:s?}", "schema", "nvtaskset-top/1", "time_ms", json_now(), "span_seconds",
	                 number_or_null(activities->span), "processes", processes(activities), "kernels",
	                 has_kernels ? kernels(activities) : json_null(), "why_no_kernels",
	                 activities->kernels_of != 0 ? activities->why_no_kernels : NULL);
}
