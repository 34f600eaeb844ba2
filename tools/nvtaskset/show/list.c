#include "actions.h"

#include "gpcs.h"
#include "gpus.h"
#include "json.h"
#include "shared.h"
#include "text.h"
#include "watch.h"

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
	const struct terminal *terminal;
	size_t widths[COLUMN_COUNT];
};

/* A process on one GPU: first those of its partition, then others on which it has launched. A process without any has one
 * row. */
struct row {
	const struct process *process;
	uint32_t place;
	bool has_gpu;
	struct pci_address pci;
	const struct tpcset *set; /* NULL: the GPU is not restricted */
};

static bool find_row(struct row *row)
{
	const struct process *process = row->process;
	uint32_t place = row->place, restricted = process->revision.count;

	row->has_gpu = false;
	row->set = NULL;
	if (place < restricted) {
		row->pci = process->revision.partitions[place].pci;
		row->set = &process->revision.partitions[place].set;
		row->has_gpu = true;
		return true;
	}
	for (unsigned int i = 0, other = restricted; i < process->counts.count && !row->has_gpu; i++) {
		if (!segment_find(&process->revision, process->counts.gpus[i].pci)) {
			row->pci = process->counts.gpus[i].pci;
			row->has_gpu = other++ == place;
		}
	}
	return row->has_gpu || place == 0;
}

/* These counters belong to the process, not to a GPU, so only its first row shows them. */
static const char *format_counter(char text[CELL_MAX], const struct row *row, uint64_t counter)
{
	if (row->place > 0)
		return "-";
	snprintf(text, CELL_MAX, "%" PRIu64, counter);
	return text;
}

static bool is_known_gpu(struct pci_address pci)
{
	return !pci_address_equal(pci, (struct pci_address){.bus = 0});
}

static const char *format_gpu(char text[CELL_MAX], const struct table *table, const struct row *row)
{
	if (!row->has_gpu)
		return "";
	return is_known_gpu(row->pci) ? gpus_label(row->pci, table->gpus, text) : "?";
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

/* --- printing ---------------------------------------------------------------------------------------------------- */

static void measure(struct table *table)
{
	bool utf8 = table->terminal->utf8;
	char text[CELL_MAX];

	for (enum column column = 0; column < COLUMN_COUNT; column++)
		table->widths[column] = strlen(columns[column].heading);
	for (size_t i = 0; i < table->processes->count; i++) {
		struct row row = {.process = &table->processes->list[i]};

		for (; find_row(&row); row.place++) {
			for (enum column column = 0; column < COLUMN_COUNT; column++) {
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

	for (enum column column = 0; column < COLUMN_COUNT; column++)
		used += table->widths[column] + 1;
	return table->terminal->columns >= used + COMMAND_ROOM_MIN ? table->terminal->columns - used : COMMAND_ROOM_MIN;
}

static void print_header(const struct table *table, FILE *page)
{
	for (enum column column = 0; column < COLUMN_COUNT; column++)
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

	for (; find_row(&row); row.place++) {
		for (enum column column = 0; column < COLUMN_COUNT; column++)
			print_cell(table, page, format_cell(text, table, &row, column), column);
		text_print(page, process->command, command_room(table), table->terminal->utf8);
		putc('\n', page);
	}
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

struct subject {
	struct topology_list gpus;
	bool json, again;
};

static void print_table(const struct topology_list *gpus, const struct processes *processes,
                        const struct terminal *terminal, FILE *page)
{
	struct table table = {.gpus = gpus, .processes = processes, .terminal = terminal};

	measure(&table);
	print_header(&table, page);
	for (size_t i = 0; i < processes->count; i++)
		print_process(&table, page, &processes->list[i]);
	for (size_t i = 0; i < processes->shared_count; i++)
		print_shared(&table, page, &processes->shared[i]);
	fputs(processes_note(processes), page);
}

static int look(void *context, const struct terminal *terminal, FILE *page, struct error *error)
{
	struct subject *subject = context;
	struct processes processes;
	int result = processes_collect(&processes, true, error);

	if (result < 0)
		return -1;
	result = shared_find(&processes, error);
	if (result == 0 && subject->json)
		result = json_write(json_list(&processes, &subject->gpus), subject->again, page, error);
	else if (result == 0)
		print_table(&subject->gpus, &processes, terminal, page);
	processes_free(&processes);
	return result;
}

int action_list(const struct options *options, struct error *error)
{
	static struct subject subject; /* large */
	struct view view = {.look = look, .subject = &subject, .is_data = options->json};
	struct error why;

	subject.json = options->json;
	subject.again = options->watch_seconds > 0;
	/* Without topologies, partitions can still be listed: the bus id names the GPU. */
	if (topology_load(&subject.gpus, &why) < 0) {
		subject.gpus.count = 0;
		fprintf(stderr, "nvtaskset: %s; GPCs are not shown\n", why.reason);
	}
	return watch(&view, options->watch_seconds, error);
}
