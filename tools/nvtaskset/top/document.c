#include "document.h"

#include "show/json.h"

static json_t *set_or_null(const struct tpcset *set)
{
	char list[TPCSET_TEXT];

	return set ? json_string(tpcset_format_list(set, list)) : json_null();
}

static json_t *on_gpu(const struct row *row, const struct topology_list *gpus)
{
	json_t *object = json_pack("{s:o, s:b, s:s?}", "tpc_list", set_or_null(row->set), "presence", row->is_presence,
	                           "why_no_times", row->why_no_times);

	object = json_joined(json_gpu(row->pci, gpus), object);
	object = json_joined(object, json_numbers(row->numbers, NUMBER_IN_FLIGHT, NUMBER_IN_FLIGHT));
	return json_joined(object, json_numbers(row->numbers, NUMBER_RATE, NUMBER_BUSY_TIME));
}

/* Its rows begin at `first`. */
static json_t *one_process(const struct activities *activities, size_t first)
{
	const struct process *process = activities->list[first].process;
	json_t *array = json_array();
	json_t *object = json_pack("{s:i, s:I, s:s, s:s, s:s?}", "pid", (int)process->pid, "uid", (json_int_t)process->uid, "user",
	                           process->user, "command", process->command, "not_in_force", process->not_in_force);

	for (size_t i = first; i < activities->count && activities->list[i].process == process; i++) {
		if (activities->list[i].has_gpu)
			array = json_with(array, on_gpu(&activities->list[i], activities->gpus));
	}
	object = json_joined(object, json_time(&process->revision, &process->time));
	return json_joined(object, json_pack("{s:o}", "gpus", array));
}

static json_t *processes(const struct activities *activities)
{
	json_t *array = json_array();

	for (size_t i = 0; i < activities->count; i++) {
		const struct row *row = &activities->list[i];
		bool is_wanted = activities->kernels_of == 0 || activities->kernels_of == row->process->pid;

		if (row->place == 0 && is_wanted && !row->process->yields_to_descendants)
			array = json_with(array, one_process(activities, i));
	}
	return array;
}

static json_t *one_kernel(const struct kernel_activity *kernel)
{
	static const struct json_member members[] = {
#define KERNEL_NUMBER_MEMBER(identifier, member, is_integer, heading, rank) {member, is_integer},
		KERNEL_NUMBERS(KERNEL_NUMBER_MEMBER)
#undef KERNEL_NUMBER_MEMBER
	};

	return json_joined(json_pack("{s:s}", "name", kernel->name),
	                   json_members(kernel->numbers, members, 0, KERNEL_NUMBER_COUNT - 1));
}

static json_t *kernels(const struct activities *activities)
{
	json_t *array = json_array();

	for (size_t i = 0; i < activities->kernel_count; i++)
		array = json_with(array, one_kernel(&activities->kernels[i]));
	return array;
}

json_t *document_of(const struct activities *activities)
{
	bool has_kernels = activities->kernels_of != 0 && !activities->why_no_kernels;

	return json_pack("{s:s, s:I, s:o, s:o, s:o, s:s?}", "schema", "nvtaskset-top/1", "time_ms", json_now(), "span_seconds",
	                 json_reading(activities->span, false), "processes", processes(activities), "kernels",
	                 has_kernels ? kernels(activities) : json_null(), "why_no_kernels",
	                 activities->kernels_of != 0 ? activities->why_no_kernels : NULL);
}
