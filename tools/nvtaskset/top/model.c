#include "model.h"

#include "cli/gpus.h"

#include <stdlib.h>
#include <string.h>

/* --- rows --------------------------------------------------------------------------------------------------------- */

static void describe_gpu(struct top_row *row, const struct activity *activity, const struct topology_list *gpus)
{
	bool is_known = pci_address_is_known(activity->row.pci);
	char label[PCI_ADDRESS_TEXT];

	row->pci = activity->row.pci;
	if (activity->row.has_gpu)
		snprintf(row->gpu, sizeof row->gpu, "%s", is_known ? gpus_label(row->pci, gpus, label) : "?");
	if (activity->row.set)
		tpcset_format_list(activity->row.set, row->tpcs);
	else
		strcpy(row->tpcs, "all");
}

/* Whether two programs have a TPC in common. */
static bool share(const struct row *a, const struct row *b)
{
	bool are_on_one_gpu = a->process != b->process && a->has_gpu && b->has_gpu && pci_address_equal(a->pci, b->pci);

	if (!are_on_one_gpu || !a->set || !b->set)
		return are_on_one_gpu;
	struct tpcset both = tpcset_and(a->set, b->set);

	return !tpcset_is_empty(&both);
}

static bool shares(const struct activity *activity, const struct activities *activities)
{
	bool does = false;

	for (size_t i = 0; i < activities->count; i++)
		does = does || share(&activity->row, &activities->list[i].row);
	return does;
}

static void describe_time(struct top_row *row, const struct process *process)
{
	const struct segment_lending *lending = &process->revision.lending;
	char *const cells[TIME_LEND] = {[TIME_QUOTA] = row->quota, [TIME_PRIORITY] = row->priority, [TIME_WEIGHT] = row->weight,
	                                 [TIME_POLICY] = row->policy};
	struct segment_quota quota = process->revision.quota;
	char text[TIME_TEXT];

	for (enum time_kind kind = 0; kind < TIME_LEND; kind++) {
		bool holds = time_holds(&process->revision, process->time.state, kind);

		if (time_format(&process->revision, kind, text))
			snprintf(cells[kind], sizeof row->quota, holds ? "%s" : "(%s)", text);
	}
	if (quota.period_us > 0)
		row->limit = reading_of(segment_quota_limits(quota) ? (double)quota.run_us / quota.period_us : 1);
	row->rank = process->revision.rank;
	if (segment_borrows(lending))
		snprintf(row->lending, sizeof row->lending, "%sborrows %u", segment_lends_us(lending) > 0 ? "lends, " : "",
		         tpcset_count(&process->borrowed.tpcs));
	else if (segment_lends_us(lending) > 0)
		snprintf(row->lending, sizeof row->lending, "lends");
}

static struct top_row row_of(const struct activity *activity, const struct activities *activities)
{
	struct top_row row = {
		.pid = (int)activity->row.process->pid,
		.user = activity->row.process->user,
		.command = activity->row.process->command,
		.busy = activity->busy,
		.tpc = activity->tpcs,
		.rate = activity->rate,
		.in_flight = activity->in_flight,
		.time = activity->time,
		.is_presence = activity->is_presence,
		.shares = !activity->is_presence && shares(activity, activities),
	};

	describe_gpu(&row, activity, activities->gpus);
	describe_time(&row, activity->row.process);
	return row;
}

bool model_matches(const struct top_row *row, const char *search)
{
	char pid[12];

	snprintf(pid, sizeof pid, "%d", row->pid);
	return search[0] != '\0' && (strcasestr(row->command, search) || strcasestr(row->user, search) || strcmp(pid, search) == 0);
}

bool model_kernel_matches(const struct kernel_activity *kernel, const char *search)
{
	return search[0] != '\0' && strcasestr(kernel->name, search);
}

/* --- sorting ------------------------------------------------------------------------------------------------------ */

/* The larger one first; what is not known last. */
static int compare_readings(struct reading a, struct reading b)
{
	if (a.is_known != b.is_known)
		return a.is_known ? -1 : 1;
	return (a.value < b.value) - (a.value > b.value);
}

static int compare_by(const struct top_row *a, const struct top_row *b, enum top_column column)
{
	int order = 0;

	switch (column) {
	case TOP_USER:
		order = strcmp(a->user, b->user);
		break;
	case TOP_TPCS:
		order = strverscmp(a->tpcs, b->tpcs);
		break;
	case TOP_QUOTA:
		order = compare_readings(a->limit, b->limit);
		break;
	case TOP_PRIORITY:
		order = b->rank.priority - a->rank.priority;
		break;
	case TOP_WEIGHT:
		order = b->rank.weight - a->rank.weight;
		break;
	case TOP_POLICY:
		order = strcmp(b->policy, a->policy);
		break;
	case TOP_LENDING:
		order = strcmp(b->lending, a->lending);
		break;
	case TOP_BUSY:
		order = compare_readings(a->busy, b->busy);
		break;
	case TOP_TPC:
		order = compare_readings(a->tpc, b->tpc);
		break;
	case TOP_RATE:
		order = compare_readings(a->rate, b->rate);
		break;
	case TOP_IN_FLIGHT:
		order = compare_readings(a->in_flight, b->in_flight);
		break;
	case TOP_TIME:
		order = compare_readings(a->time, b->time);
		break;
	case TOP_COMMAND:
		order = strcmp(a->command, b->command);
		break;
	case TOP_GPU:
	case TOP_PID:
	case TOP_COLUMN_COUNT:
		break;
	}
	if (order == 0 && column == TOP_GPU)
		order = strverscmp(a->gpu, b->gpu);
	return order;
}

/* Rows that are equal in the column are in the order of rates, and of pids and GPUs, so that they keep their places. */
static int compare_rows(const void *first, const void *second, void *context)
{
	const struct top_row *a = first, *b = second;
	enum top_column column = *(const enum top_column *)context;
	int order = compare_by(a, b, column);

	if (order == 0 && column != TOP_PID)
		order = compare_by(a, b, TOP_RATE);
	if (order == 0)
		order = (a->pid > b->pid) - (a->pid < b->pid);
	return order != 0 ? order : strverscmp(a->gpu, b->gpu);
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

/* Of all users: the bars are. */
static void add_row(struct model *model, const struct top_row *row)
{
	model->all[model->all_count++] = *row;
	model->some_are_present = model->some_are_present || (row->busy.is_known && row->is_presence);
	model->some_share = model->some_share || (row->busy.is_known && row->shares);
}

static bool is_of_user(const struct top_row *row, const struct view *view)
{
	return strncmp(row->user, view->user, strlen(view->user)) == 0;
}

int model_make(struct model *model, const struct activities *activities, const struct view *view, struct error *error)
{
	enum top_column sort = view->sort;

	*model = (struct model){
		.pid = activities->kernels_of,
		.has_ended = activities->kernels_of != 0 && !processes_find(&activities->processes, activities->kernels_of),
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
		const struct activity *activity = &activities->list[i];
		struct top_row row = row_of(activity, activities);

		if (model->pid == 0 || row.pid == model->pid) {
			add_row(model, &row);
			model->why_no_times = model->why_no_times ? model->why_no_times : activity->why_no_times;
			if (is_of_user(&row, view))
				model->rows[model->row_count++] = row;
		}
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
