#include "model.h"

#include "cli/gpus.h"

#include <stdlib.h>
#include <string.h>

/* --- rows --------------------------------------------------------------------------------------------------------- */

static bool share(const struct row *a, const struct row *b)
{
	bool are_on_one_gpu = a->process != b->process && a->has_gpu && b->has_gpu && pci_address_equal(a->pci, b->pci);

	if (!are_on_one_gpu || !a->set || !b->set)
		return are_on_one_gpu;
	struct tpcset both = tpcset_and(a->set, b->set);

	return !tpcset_is_empty(&both);
}

static bool shares(const struct row *row, const struct activities *activities)
{
	bool does = false;

	for (size_t i = 0; i < activities->count && !row->is_presence; i++)
		does = does || share(row, &activities->list[i]);
	return does;
}

bool model_matches(const struct row *row, const char *search)
{
	const struct process *process = row->process;
	char pid[CELL_MAX];

	return search[0] != '\0' && (strcasestr(process->command, search) || strcasestr(process->user, search) ||
	                             strcmp(cell_of_row(row, CELL_PID, pid), search) == 0);
}

bool model_kernel_matches(const struct kernel_activity *kernel, const char *search)
{
	return search[0] != '\0' && strcasestr(kernel->name, search);
}

/* --- sorting ------------------------------------------------------------------------------------------------------ */

const struct column top_columns[TOP_COLUMN_COUNT] = {
#define TOP_COLUMN_ENTRY(what, heading, number, rank, widest, may_be_missing) \
	{heading, CELL_##what, number, rank, widest, may_be_missing},
	TOP_COLUMNS(TOP_COLUMN_ENTRY)
#undef TOP_COLUMN_ENTRY
};

/* Empty texts come last. */
static int compare_texts(const struct row *a, const struct row *b, unsigned int cell)
{
	char text_of_a[CELL_MAX], text_of_b[CELL_MAX];
	const char *first = cell_of_row(a, cell, text_of_a), *second = cell_of_row(b, cell, text_of_b);
	int order = (first[0] == '\0') - (second[0] == '\0');

	return order != 0 ? order : strverscmp(first, second);
}

static int compare_by(const struct row *a, const struct row *b, enum top_column column)
{
	unsigned int cell = top_columns[column].what;
	bool has_numbers = top_columns[column].is_number || cell == CELL_QUOTA;

	return has_numbers ? reading_compare(cell_number(a, (enum cell)cell), cell_number(b, (enum cell)cell))
	                   : compare_texts(a, b, cell);
}

/* Rows that are equal in the column are ordered by rate, pid and GPU, and keep their places. */
static int compare_rows(const void *first, const void *second, void *context)
{
	const struct row *a = first, *b = second;
	enum top_column column = *(const enum top_column *)context;
	int order = column == TOP_PID ? 0 : compare_by(a, b, column);

	if (order == 0 && column != TOP_PID)
		order = compare_by(a, b, TOP_RATE);
	if (order == 0)
		order = (a->process->pid > b->process->pid) - (a->process->pid < b->process->pid);
	return order != 0 ? order : compare_by(a, b, TOP_GPU);
}

/* --- the model ---------------------------------------------------------------------------------------------------- */

static void describe_gpus(struct model *model, const struct topology_list *gpus)
{
	for (unsigned int i = 0; i < gpus->count; i++) {
		struct top_gpu *gpu = &model->gpus[model->gpu_count++];
		char label[PCI_ADDRESS_TEXT];

		gpu->pci = gpus->gpus[i].pci;
		snprintf(gpu->label, sizeof gpu->label, "%s", gpus_label(gpu->pci, gpus, label));
		text_clean(gpu->name, gpus->gpus[i].name, strlen(gpus->gpus[i].name));
	}
}

/* Of all users, for the bars. */
static void add_row(struct model *model, const struct row *row)
{
	bool is_busy_known = row->numbers[NUMBER_BUSY].is_known;

	model->all[model->all_count++] = *row;
	model->some_are_present = model->some_are_present || (is_busy_known && row->is_presence);
	model->some_share = model->some_share || (is_busy_known && row->shares);
	model->why_no_times = model->why_no_times ? model->why_no_times : row->why_no_times;
}

int model_make(struct model *model, const struct activities *activities, const struct view *view, struct error *error)
{
	enum top_column sort = view->sort;

	*model = (struct model){
		.pid = activities->kernels_of,
		.has_ended = activities->kernels_of != 0 &&
	                     !processes_find(&activities->processes, activities->kernels_of),
		.kernel_count = activities->kernel_count,
		.kernels = activities->kernels,
		.why_no_kernels = activities->why_no_kernels,
		.some_are_hidden = activities->processes.some_are_hidden,
		.rows = calloc(activities->count + 1, sizeof *model->rows),
		.all = calloc(activities->count + 1, sizeof *model->all),
	};
	if (!model->rows || !model->all) {
		model_free(model);
		return error_set(error, "no memory");
	}
	for (size_t i = 0; i < activities->count; i++) {
		struct row row = activities->list[i];

		if (row.process->yields_to_descendants || (model->pid != 0 && row.process->pid != model->pid))
			continue;
		row.shares = shares(&row, activities);
		add_row(model, &row);
		if (strncmp(row.process->user, view->user, strlen(view->user)) == 0)
			model->rows[model->row_count++] = row;
	}
	describe_gpus(model, activities->gpus);
	qsort_r(model->rows, model->row_count, sizeof *model->rows, compare_rows, &sort);
	return 0;
}

void model_free(struct model *model)
{
	free(model->rows);
	free(model->all);
	*model = (struct model){.row_count = 0};
}
