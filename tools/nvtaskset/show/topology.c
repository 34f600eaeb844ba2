#include "cli/actions.h"

#include "cli/gpus.h"
#include "json.h"
#include "picture.h"
#include "terminal/watch.h"

struct subject {
	struct topology_list gpus;
	struct gpu_choices shown;
	struct labels labels;
	struct processes processes;
	bool json, again;
};

/* The GPUs of -G, or all GPUs, also GPUs that CUDA_VISIBLE_DEVICES hides. */
static int choose(struct subject *subject, const struct gpus_given *given, struct error *error)
{
	struct gpu_choices *shown = &subject->shown;

	if (given->count == 0) {
		for (shown->count = 0; shown->count < subject->gpus.count; shown->count++)
			shown->choices[shown->count] = (struct gpu_choice){.gpu = &subject->gpus.gpus[shown->count]};
	} else if (gpus_choose(shown, &subject->gpus, given, error) < 0) {
		return -1;
	}
	if (shown->choices[0].set)
		return error_set(error, "-G %.60s: -T takes no SET", given->texts[0]);
	return 0;
}

static int update(void *context, struct error *error)
{
	struct subject *subject = context;
	struct processes processes;

	if (processes_collect(&processes, false, error) < 0)
		return -1;
	processes_free(&subject->processes);
	subject->processes = processes;
	labels_update(&subject->labels, &processes, &subject->shown);
	return shared_find(&subject->processes, error);
}

static int draw(void *context, const struct terminal *terminal, FILE *page, struct error *error)
{
	struct subject *subject = context;
	const struct processes *processes = &subject->processes;
	char label[PCI_ADDRESS_TEXT];

	if (subject->json)
		return json_write(json_topology(&subject->shown, processes, &subject->gpus), subject->again, page,
		                  error);
	for (unsigned int i = 0; i < subject->shown.count; i++) {
		const struct topology *gpu = subject->shown.choices[i].gpu;

		fputs(i > 0 ? "\n" : "", page);
		picture_draw(gpu, gpus_label(gpu->pci, &subject->gpus, label), processes, &subject->labels, terminal,
		             page);
	}
	fputs(processes_note(processes, true), page);
	return 0;
}

int action_topology(const struct options *options, struct error *error)
{
	static struct subject subject; /* large */
	struct watch picture = {.subject = &subject, .update = update, .draw = draw, .is_data = options->json};

	subject.json = options->json;
	subject.again = options->watch_seconds > 0;
	if (topology_load(&subject.gpus, error) < 0 || choose(&subject, &options->gpus, error) < 0)
		return -1;
	int result = watch(&picture, options->watch_seconds, !subject.again, error);

	processes_free(&subject.processes);
	return result;
}
