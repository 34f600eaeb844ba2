#include "cli/actions.h"

#include "cli/tables.h"
#include "model.h"
#include "show/activity.h"
#include "show/json.h"
#include "terminal/watch.h"

#include <jansson.h>

/* --- a look as a JSON document, which json.md describes ----------------------------------------------------------- */

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
	object = json_joined(object, json_numbers(row->numbers, NUMBER_MEMORY, NUMBER_MEMORY_LIMIT));
	return json_joined(object, json_numbers(row->numbers, NUMBER_RATE, NUMBER_BUSY_TIME));
}

/* The rows of a process; they begin at `first`. */
static json_t *one_process(const struct activities *activities, size_t first)
{
	const struct process *process = activities->list[first].process;
	json_t *array = json_array();
	json_t *object = json_pack("{s:i, s:I, s:s, s:s, s:s?}", "pid", (int)process->pid, "uid",
	                           (json_int_t)process->uid, "user", process->user, "command", process->command,
	                           "not_in_force", process->not_in_force);

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

/* Of all processes, or of the process with shown kernels. NULL without memory. */
static json_t *document_of(const struct activities *activities)
{
	bool has_kernels = activities->kernels_of != 0 && !activities->why_no_kernels;

	return json_pack("{s:s, s:I, s:o, s:o, s:o, s:s?}", "schema", "nvtaskset-top/2", "time_ms", json_now(),
	                 "span_seconds", json_reading(activities->span, false), "processes", processes(activities),
	                 "kernels", has_kernels ? kernels(activities) : json_null(), "why_no_kernels",
	                 activities->kernels_of != 0 ? activities->why_no_kernels : NULL);
}

/* --- the page ----------------------------------------------------------------------------------------------------- */

struct subject {
	bool json, once;
	double delay_seconds;
	struct topology_list gpus;
	struct activities activities;
	struct view view;
};

/* While paused, programs pay for nothing. */
static void keep_up(void *context)
{
	struct subject *subject = context;

	if (!subject->view.is_paused)
		activities_keep_up(&subject->activities);
}

static int update(void *context, struct error *error)
{
	struct subject *subject = context;

	return subject->view.is_paused ? 0 : activities_look(&subject->activities, &subject->gpus, error);
}

static int draw(void *context, const struct terminal *terminal, FILE *page, struct error *error)
{
	struct subject *subject = context;
	struct model model;

	if (subject->json)
		return json_write(document_of(&subject->activities), !subject->once, page, error);
	int result = model_make(&model, &subject->activities, &subject->view, error);

	if (result == 0) {
		model.delay = subject->delay_seconds;
		result = layout_draw(&model, &subject->view, terminal, page, error);
		model_free(&model);
	}
	return result;
}

static bool take_keys(void *context, const char *bytes, size_t length)
{
	struct subject *subject = context;
	struct terminal terminal = terminal_look();
	struct error error;
	bool goes_on = true;

	while (length > 0 && goes_on) {
		struct model model;

		goes_on = model_make(&model, &subject->activities, &subject->view, &error) == 0;
		if (goes_on) {
			size_t rows = layout_rows(&model, &subject->view, &terminal);

			goes_on = keys_take(&subject->view, key_next(&bytes, &length), &model, rows);
			model_free(&model);
		}
	}
	return goes_on;
}

static int show(struct subject *subject, struct error *error)
{
	struct watch page = {
		.subject = subject,
		.update = update,
		.draw = draw,
		.take_keys = take_keys,
		.meanwhile = {.act = keep_up, .context = subject, .every_ms = MONITOR_TAKE_MS},
		.is_data = subject->json,
		.is_measured = true,
	};
	bool once = subject->once || (!subject->json && !terminal_look().moves_cursor);
	int result = activities_look(&subject->activities, &subject->gpus, error);

	if (result == 0)
		result = activities_check(&subject->activities, subject->activities.kernels_of, error);
	/* Also in the middle of a look at many programs. */
	subject->activities.watched.is_wanted = watch_is_wanted;
	return result == 0 ? watch(&page, subject->delay_seconds, once, error) : -1;
}

int action_top(const struct options *options, struct error *error)
{
	static struct subject subject = {.view = {.sort = TOP_BUSY}}; /* large */
	struct error why;

	subject.json = options->json;
	subject.once = options->once;
	subject.delay_seconds = options->delay_seconds;
	subject.activities.measures_times = true;
	if (options->pid && tables_parse_pid(&subject.activities.kernels_of, options->pid, error) < 0)
		return -1;
	/* Without topologies, the bus id names the GPU. */
	if (topology_load(&subject.gpus, &why) < 0) {
		subject.gpus.count = 0;
		fprintf(stderr, "nvtaskset: %s; GPUs are shown by their programs only\n", why.reason);
	}
	int result = show(&subject, error);

	activities_free(&subject.activities);
	return result;
}
