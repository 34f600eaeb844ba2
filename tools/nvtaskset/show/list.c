#include "cli/actions.h"

#include "activity.h"
#include "cli/gpcs.h"
#include "cli/gpus.h"
#include "cli/time_given.h"
#include "groups.h"
#include "json.h"
#include "rows.h"
#include "shared.h"
#include "terminal/text.h"
#include "terminal/watch.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* --- the table --------------------------------------------------------------------------------------------------- */

/* X(identifier, heading, whether it is a number) */
#define COLUMNS(X)                         \
	X(PID, "PID", true)                \
	X(USER, "USER", false)             \
	X(GPU, "GPU", false)               \
	X(TPCS, "TPCS", false)             \
	X(GPCS, "GPCS", false)             \
	X(LAUNCHES, "LAUNCHES", true)      \
	X(ENDED, "ENDED", true)            \
	X(IN_FLIGHT, "IN-FLIGHT", true)    \
	X(BUSY, "BUSY%", true)             \
	X(UPLOADS, "UPLOADS", true)        \
	X(RESTRICTED, "RESTRICTED", true)  \
	X(OUTSIDE, "OUTSIDE", true)

enum column {
#define COLUMN_ENUM(identifier, heading, number) COLUMN_##identifier,
	COLUMNS(COLUMN_ENUM)
#undef COLUMN_ENUM
	COLUMN_COUNT /* COMMAND comes after these, at the end of the line */
};

static const struct {
	const char *heading;
	bool is_number;
} columns[] = {
#define COLUMN_ENTRY(identifier, heading, number) {heading, number},
	COLUMNS(COLUMN_ENTRY)
#undef COLUMN_ENTRY
};

#define CELL_MAX TPCSET_TEXT
#define COMMAND_ROOM_MIN 8 /* columns; if the terminal has fewer left, the line wraps */

struct table {
	const struct topology_list *gpus;
	const struct processes *processes;
	const struct activities *activities; /* NULL: without BUSY% */
	const struct terminal *terminal;
	size_t widths[COLUMN_COUNT];
};

/* These counters belong to the process, not to a GPU, so only its first row shows them. */
static const char *format_counter(char text[CELL_MAX], const struct row *row, uint64_t counter)
{
	if (row->place > 0)
		return "-";
	snprintf(text, CELL_MAX, "%" PRIu64, counter);
	return text;
}

static const char *format_gpu(char text[CELL_MAX], const struct table *table, const struct row *row)
{
	if (!row->has_gpu)
		return "";
	return pci_address_is_known(row->pci) ? gpus_label(row->pci, table->gpus, text) : "?";
}

static const char *format_gpcs(char text[CELL_MAX], const struct table *table, const struct row *row)
{
	const struct topology *gpu = topology_find(table->gpus, row->pci);
	struct gpcs gpcs = gpu ? gpcs_of(gpu, row->set) : (struct gpcs){.whole = {{0}}};

	return gpcs_format(&gpcs, text);
}

static const char *format_kernels(char text[CELL_MAX], const struct row *row, enum column column)
{
	struct kernels kernels = process_kernels(row->process, row->pci);
	bool is_known = column == COLUMN_LAUNCHES ? kernels.launched_are_known : kernels.ended_are_known;
	uint64_t number = kernels.count.launched;

	if (!is_known)
		return "-";
	if (column == COLUMN_ENDED)
		number = kernels.count.ended;
	else if (column == COLUMN_IN_FLIGHT)
		number = kernels.count.in_flight;
	snprintf(text, CELL_MAX, "%" PRIu64, number);
	return text;
}

static const char *format_busy(char text[CELL_MAX], const struct table *table, const struct row *row)
{
	const struct activity *activity = activities_find(table->activities, row->process, row->pci);

	if (!row->has_gpu || !activity || !activity->busy.is_known)
		return "-";
	snprintf(text, CELL_MAX, "%.1f%s", activity->busy.value * 100, activity->is_presence ? "p" : "");
	return text;
}

/* Returns the text of a cell: in `text`, of the process, or a constant. */
static const char *format_cell(char text[CELL_MAX], const struct table *table, const struct row *row,
                               enum column column)
{
	const struct process *process = row->process;
	const char *cell = text;

	switch (column) {
	case COLUMN_PID:
		snprintf(text, CELL_MAX, "%d", (int)process->pid);
		break;
	case COLUMN_USER:
		cell = process->user;
		break;
	case COLUMN_GPU:
		cell = format_gpu(text, table, row);
		break;
	case COLUMN_TPCS:
		cell = row->set ? tpcset_format_list(row->set, text) : "all";
		break;
	case COLUMN_GPCS:
		cell = row->set ? format_gpcs(text, table, row) : "";
		break;
	case COLUMN_LAUNCHES:
	case COLUMN_ENDED:
	case COLUMN_IN_FLIGHT:
		cell = format_kernels(text, row, column);
		break;
	case COLUMN_BUSY:
		cell = format_busy(text, table, row);
		break;
	case COLUMN_UPLOADS:
		cell = format_counter(text, row, process_uploads(process));
		break;
	case COLUMN_RESTRICTED:
		cell = format_counter(text, row, process->counters.restricted);
		break;
	case COLUMN_OUTSIDE:
		cell = format_counter(text, row, process_outside(process));
		break;
	case COLUMN_COUNT:
		break;
	}
	return cell[0] != '\0' ? cell : "-";
}

/* The first shown column from this one on. */
static enum column shown_from(const struct table *table, unsigned int column)
{
	return (enum column)(column == COLUMN_BUSY && !table->activities ? column + 1 : column);
}

/* In order, those that are shown. */
#define FOR_COLUMNS(table, column) \
	for (enum column column = shown_from(table, 0); column < COLUMN_COUNT; column = shown_from(table, column + 1))

/* --- printing ---------------------------------------------------------------------------------------------------- */

static void measure(struct table *table)
{
	bool utf8 = table->terminal->utf8;
	char text[CELL_MAX];

	FOR_COLUMNS(table, column)
		table->widths[column] = strlen(columns[column].heading);
	for (size_t i = 0; i < table->processes->count; i++) {
		struct row row = {.process = &table->processes->list[i]};

		for (; row_find(&row); row.place++) {
			FOR_COLUMNS(table, column) {
				size_t width = text_width(format_cell(text, table, &row, column), utf8);

				if (width > table->widths[column])
					table->widths[column] = width;
			}
		}
	}
}

static void print_cell(const struct table *table, FILE *page, const char *text, enum column column)
{
	int padding = (int)(table->widths[column] - text_width(text, table->terminal->utf8));

	if (columns[column].is_number)
		fprintf(page, "%*s", padding, "");
	text_print(page, text, TEXT_WHOLE, table->terminal->utf8);
	fprintf(page, "%*s", columns[column].is_number ? 1 : padding + 1, "");
}

static size_t command_room(const struct table *table)
{
	size_t used = 0;

	FOR_COLUMNS(table, column)
		used += table->widths[column] + 1;
	return table->terminal->columns >= used + COMMAND_ROOM_MIN ? table->terminal->columns - used : COMMAND_ROOM_MIN;
}

static void print_header(const struct table *table, FILE *page)
{
	FOR_COLUMNS(table, column)
		print_cell(table, page, columns[column].heading, column);
	fputs("COMMAND\n", page);
}

static void print_reasons(const struct process *process, FILE *page)
{
	if (process->not_in_force)
		fprintf(page, "        %s\n", process->not_in_force);
	for (int reason = 0; reason < SEGMENT_REASON_COUNT; reason++) {
		uint64_t times = process->counters.reasons[reason];

		if (times > 0)
			fprintf(page, "        %" PRIu64 " %s: %s\n", times, times == 1 ? "time" : "times",
			        segment_reason_text((enum segment_reason)reason));
	}
}

static void print_time(const struct process *process, FILE *page)
{
	char given[TIME_LINE], use[TIME_USE];

	if (segment_time_is_given(&process->revision))
		fprintf(page, "        %s%s\n", time_format_all(&process->revision, given),
		        time_describe(&process->revision, &process->time, use));
}

/* Of this process's TPCs, those that others have borrowed now. */
static struct tpcset lent_by(const struct process *process, const struct processes *all)
{
	struct tpcset own = {{0}}, borrowed = {{0}};

	for (uint32_t i = 0; i < process->revision.count; i++)
		own = tpcset_or(&own, &process->revision.partitions[i].set);
	for (size_t i = 0; i < all->count && segment_lends_us(&process->revision.lending) > 0; i++)
		borrowed = tpcset_or(&borrowed, &all->list[i].borrowed.tpcs);
	return tpcset_and(&own, &borrowed);
}

static void print_lending(const struct process *process, const struct processes *all, FILE *page)
{
	struct tpcset lent = lent_by(process, all);
	const struct segment_borrowed *borrowed = &process->borrowed;
	char text[TPCSET_TEXT];

	if (!tpcset_is_empty(&lent))
		fprintf(page, "        others use TPCs %s now\n", tpcset_format_list(&lent, text));
	if (!tpcset_is_empty(&borrowed->tpcs))
		fprintf(page, "        borrows TPCs %s now\n", tpcset_format_list(&borrowed->tpcs, text));
	if (borrowed->tpc_us > 0)
		fprintf(page, "        borrowed %.1f TPC-seconds; %" PRIu64 " launches took longer than LIMIT there\n",
		        (double)borrowed->tpc_us / 1e6, borrowed->overruns);
}

/* What of the kernels launched and ended nobody has announced. */
static void print_unannounced(const struct process *process, FILE *page)
{
	uint64_t kernels = 0;

	for (unsigned int i = 0; i < process->counts.count; i++)
		kernels = segment_sum(kernels, process->counts.gpus[i].unheard);
	if (kernels > 0)
		fprintf(page, "        %" PRIu64 " %s counted when %s ended: graphs with conditional nodes, or that kernels launch\n",
		        kernels, kernels == 1 ? "kernel" : "kernels", kernels == 1 ? "it" : "they");
}

/* Why a number of kernels is not known. */
static void print_gaps(const struct process *process, FILE *page)
{
	uint32_t gaps = process->counts.gaps;

	for (unsigned int i = 0; i < process->counts.count; i++)
		gaps |= process->counts.gpus[i].gaps;
	for (int gap = 0; gap < COUNTS_GAP_COUNT; gap++) {
		if (gaps >> gap & 1)
			fprintf(page, "        kernels are not all counted: %s\n", counts_gap_text((enum counts_gap)gap));
	}
}

static void print_process(const struct table *table, FILE *page, const struct process *process)
{
	struct row row = {.process = process};
	char text[CELL_MAX];

	for (; row_find(&row); row.place++) {
		FOR_COLUMNS(table, column)
			print_cell(table, page, format_cell(text, table, &row, column), column);
		text_print(page, process->command, command_room(table), table->terminal->utf8);
		putc('\n', page);
	}
	print_time(process, page);
	print_lending(process, table->processes, page);
	print_reasons(process, page);
	print_unannounced(process, page);
	print_gaps(process, page);
}

/* "processes 12, 13 and 14 share TPCs 4-7 of GPU 0" */
static void print_shared(const struct table *table, FILE *page, const struct shared *shared)
{
	const struct processes *processes = table->processes;
	char list[TPCSET_TEXT], label[PCI_ADDRESS_TEXT];
	const char *separator = "processes ";
	pid_t last = 0;

	for (size_t i = 0; i < processes->count; i++) {
		const struct process *process = &processes->list[i];

		if (process_shares(process, shared) && last) {
			fprintf(page, "%s%d", separator, (int)last);
			separator = ", ";
		}
		last = process_shares(process, shared) ? process->pid : last;
	}
	fprintf(page, " and %d share TPCs %s of GPU %s\n", (int)last, tpcset_format_list(&shared->tpcs, list),
	        gpus_label(shared->gpu, table->gpus, label));
}

/* ---------------------------------------------------------------------------------------------------------------------- */

#define SAMPLE_SECONDS 0.1

struct subject {
	struct topology_list gpus;
	struct activities activities;
	bool busy, json, again;
};

static void keep_up(void *context)
{
	struct subject *subject = context;

	activities_keep_up(&subject->activities);
}

/* Looks, and with --busy again a sample later. */
static int take_looks(struct subject *subject, struct error *error)
{
	const struct meanwhile meanwhile = {.act = keep_up, .context = subject, .every_ms = LOOK_TAKE_MS};
	int64_t until = event_due_after(event_now(), SAMPLE_SECONDS);
	int result = activities_look(&subject->activities, &subject->gpus, error);

	if (result < 0 || !subject->busy)
		return result;
	result = event_wait_until(until, &meanwhile, error);
	return result == 0 ? activities_look(&subject->activities, &subject->gpus, error) : -1;
}

static void print_table(const struct subject *subject, const struct groups *groups, const struct terminal *terminal,
                        FILE *page)
{
	const struct processes *processes = &subject->activities.processes;
	struct table table = {.gpus = &subject->gpus, .processes = processes, .terminal = terminal};

	if (subject->busy)
		table.activities = &subject->activities;
	measure(&table);
	print_header(&table, page);
	for (size_t i = 0; i < processes->count; i++)
		print_process(&table, page, &processes->list[i]);
	for (size_t i = 0; i < processes->shared_count; i++) {
		if (!groups_explain(processes, &processes->shared[i]))
			print_shared(&table, page, &processes->shared[i]);
	}
	groups_print(groups, page);
	fputs(processes_note(processes), page);
}

static int print_json(const struct subject *subject, const struct groups *groups, FILE *page, struct error *error)
{
	json_t *list = json_list(&subject->activities.processes, groups, &subject->gpus);
	int result = list && subject->busy ? json_add_busy(list, &subject->activities, error) : 0;

	if (result == 0)
		return json_write(list, subject->again, page, error);
	json_decref(list);
	return -1;
}

static int update(void *context, struct error *error)
{
	struct subject *subject = context;
	int result = take_looks(subject, error);

	return result == 0 ? shared_find(&subject->activities.processes, error) : -1;
}

static int draw(void *context, const struct terminal *terminal, FILE *page, struct error *error)
{
	const struct subject *subject = context;
	struct groups groups = {.count = 0};
	int result = groups_sum(&groups, &subject->activities.processes, error);

	if (result == 0 && subject->json)
		result = print_json(subject, &groups, page, error);
	else if (result == 0)
		print_table(subject, &groups, terminal, page);
	free(groups.list);
	return result;
}

int action_list(const struct options *options, struct error *error)
{
	static struct subject subject; /* large */
	struct watch list = {.subject = &subject, .update = update, .draw = draw, .is_data = options->json};
	struct error why;

	subject.busy = subject.activities.measures_times = options->busy;
	subject.json = options->json;
	subject.again = options->watch_seconds > 0;
	/* Without topologies, partitions can still be listed: the bus id names the GPU. */
	if (topology_load(&subject.gpus, &why) < 0) {
		subject.gpus.count = 0;
		fprintf(stderr, "nvtaskset: %s; GPCs are not shown\n", why.reason);
	}
	int result = watch(&list, options->watch_seconds, !subject.again, error);

	activities_free(&subject.activities);
	return result;
}
