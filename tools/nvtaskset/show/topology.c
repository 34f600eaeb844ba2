/*
 * A GPU as a picture of characters. Each GPC is a row, each TPC a cell with its number and the letter of the process
 * there. A legend of the processes follows. A UTF-8 terminal gets lines and dots, any other terminal ASCII:
 *
 *   GPC 1 |  0 A    8 A   16 #   24 . : 62 .
 *
 * A bar is in front of each virtual GPC, a dotted bar in front of each TPC that is in no virtual GPC. If only virtual
 * GPCs are known, they are the rows. Lines of cells fit the terminal, or 80 columns if there is no terminal.
 */
#include "cli/actions.h"

#include "cells.h"
#include "cli/gpcs.h"
#include "cli/gpus.h"
#include "json.h"
#include "processes.h"
#include "terminal/text.h"
#include "terminal/watch.h"

#include <stdlib.h>
#include <string.h>

#define COLUMNS_OF_FILES 80
#define TITLE_MAX 24

/* --- letters ------------------------------------------------------------------------------------------------------ */

/* The letters of processes. With --watch, a process keeps its letter. */
#define LABELS_MAX 52

/* All zero before the first use. */
struct labels {
	pid_t pids[LABELS_MAX]; /* 0: free */
};

static bool is_drawn(const struct process *process, const struct gpu_choices *shown)
{
	bool found = false;

	for (unsigned int i = 0; i < shown->count; i++)
		found = found || process_set(process, shown->choices[i].gpu->pci);
	return found;
}

/* Returns the label of a process, below LABELS_MAX; LABELS_MAX if all letters were taken when the process came. */
static unsigned int labels_find(const struct labels *labels, pid_t pid)
{
	unsigned int label = 0;

	while (label < LABELS_MAX && labels->pids[label] != pid)
		label++;
	return label;
}

/* Frees the letters of processes that left the shown GPUs, and gives a letter to each new process. */
static void labels_update(struct labels *labels, const struct processes *processes, const struct gpu_choices *shown)
{
	for (unsigned int label = 0; label < LABELS_MAX; label++) {
		const struct process *process = processes_find(processes, labels->pids[label]);

		if (!process || !is_drawn(process, shown))
			labels->pids[label] = 0;
	}
	for (size_t i = 0; i < processes->count; i++) {
		pid_t pid = processes->list[i].pid;
		unsigned int free = labels_find(labels, 0);

		if (is_drawn(&processes->list[i], shown) && labels_find(labels, pid) == LABELS_MAX && free < LABELS_MAX)
			labels->pids[free] = pid;
	}
}

/* Returns 'A' to 'Z' or 'a' to 'z', or '?' for LABELS_MAX. */
static char labels_letter(unsigned int label)
{
	return label < 26 ? (char)('A' + label) : label < LABELS_MAX ? (char)('a' + label - 26) : '?';
}

enum {
	FREE = LABELS_MAX + 1,
	SHARED
};

struct picture {
	const struct topology *gpu;
	const struct processes *processes;
	const struct labels *labels;
	const struct terminal *terminal;
	FILE *page;
};

/* --- colours ----------------------------------------------------------------------------------------------------- */

static const char *const basic_colours[] = {"30;46", "30;43", "30;45", "30;42", "30;47", "37;44"};
static const char *const palette_colours[] = {
	"38;5;16;48;5;117", "38;5;16;48;5;222", "38;5;16;48;5;150", "38;5;16;48;5;218",
	"38;5;16;48;5;183", "38;5;16;48;5;215", "38;5;16;48;5;116", "38;5;16;48;5;187",
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const char *colour_of(unsigned int label, enum terminal_colours colours)
{
	const char *colour = "7";

	if (label == FREE)
		colour = "2";
	else if (label == SHARED)
		colour = "1;37;41";
	else if (label < LABELS_MAX && colours == TERMINAL_PALETTE)
		colour = palette_colours[label % COUNT(palette_colours)];
	else if (label < LABELS_MAX)
		colour = basic_colours[label % COUNT(basic_colours)];
	return colour;
}

static void begin_colour(const struct picture *picture, unsigned int label)
{
	if (picture->terminal->colours != TERMINAL_PLAIN)
		fprintf(picture->page, "\033[%sm", colour_of(label, picture->terminal->colours));
}

static void end_colour(const struct picture *picture)
{
	if (picture->terminal->colours != TERMINAL_PLAIN)
		fputs("\033[m", picture->page);
}

/* --- labels ------------------------------------------------------------------------------------------------------- */

/* `is_lent`: the TPC is lent now. */
static unsigned int label_of(const struct picture *picture, unsigned int tpc, bool *is_lent)
{
	unsigned int label = FREE;

	*is_lent = false;
	for (size_t i = 0; i < picture->processes->count; i++) {
		const struct process *process = &picture->processes->list[i];
		const struct tpcset *set = process_set(process, picture->gpu->pci);

		if (set && tpcset_has(set, tpc)) {
			label = label == FREE ? labels_find(picture->labels, process->pid) : SHARED;
			*is_lent = *is_lent || tpcset_has(&process->lent, tpc);
		}
	}
	return label;
}

static const char *singleton_bar(const struct picture *picture)
{
	return terminal_draws(picture->terminal) ? "┊" : ":";
}

static void print_label(const struct picture *picture, unsigned int label)
{
	if (label == FREE)
		fputs(terminal_draws(picture->terminal) ? "·" : ".", picture->page);
	else
		putc(label == SHARED ? '#' : labels_letter(label), picture->page);
}

/* --- tiles ------------------------------------------------------------------------------------------------------- */

struct tile {
	unsigned int row;   /* the GPC, or in rows of virtual GPCs the virtual GPC; TOPOLOGY_UNKNOWN: none */
	unsigned int group; /* the virtual GPC */
	unsigned int tpc;
	bool is_singleton;
};

struct grid {
	unsigned int columns; /* of the page */
	unsigned int digits;  /* of the highest TPC number */
	bool rows_are_virtual;
	unsigned int title_width;
	struct tile tiles[TPCSET_MAX];
};

static int compare_tiles(const void *left, const void *right)
{
	const struct tile *a = left, *b = right;
	int order = (a->row > b->row) - (a->row < b->row);

	if (order == 0)
		order = (a->group > b->group) - (a->group < b->group);
	return order != 0 ? order : (a->tpc > b->tpc) - (a->tpc < b->tpc);
}

static bool knows_gpcs(const struct topology *gpu)
{
	bool known = false;

	for (unsigned int tpc = 0; tpc < gpu->tpc_count; tpc++)
		known = known || gpu->tpcs[tpc].gpc != TOPOLOGY_UNKNOWN;
	return known;
}

static struct tile tile_of(const struct topology *gpu, unsigned int tpc, bool rows_are_virtual)
{
	struct tile tile = {
		.row = gpu->tpcs[tpc].gpc,
		.group = gpu->tpcs[tpc].virtual_gpc,
		.tpc = tpc,
		.is_singleton = gpcs_is_singleton(gpu, tpc),
	};

	if (rows_are_virtual)
		tile.row = tile.is_singleton ? TOPOLOGY_UNKNOWN : tile.group;
	return tile;
}

static const char *row_title(const struct grid *grid, unsigned int row, char text[TITLE_MAX])
{
	const char *noun = grid->rows_are_virtual ? "virtual GPC" : "GPC";

	if (row == TOPOLOGY_UNKNOWN)
		snprintf(text, TITLE_MAX, "%s", "no GPC");
	else
		snprintf(text, TITLE_MAX, "%s %u", noun, row);
	return text;
}

static void lay_out(struct grid *grid, const struct picture *picture)
{
	const struct topology *gpu = picture->gpu;
	char text[TITLE_MAX];

	grid->columns = picture->terminal->is_terminal ? picture->terminal->columns : COLUMNS_OF_FILES;
	grid->digits = (unsigned int)snprintf(text, sizeof text, "%u", gpu->tpc_count - 1u);
	grid->rows_are_virtual = !knows_gpcs(gpu);
	grid->title_width = 0;
	for (unsigned int tpc = 0; tpc < gpu->tpc_count; tpc++) {
		grid->tiles[tpc] = tile_of(gpu, tpc, grid->rows_are_virtual);
		size_t width = strlen(row_title(grid, grid->tiles[tpc].row, text));

		if (width > grid->title_width)
			grid->title_width = (unsigned int)width;
	}
	qsort(grid->tiles, gpu->tpc_count, sizeof grid->tiles[0], compare_tiles);
}

/* How many tiles, with their bars, fit in a line: at least 1. */
static unsigned int tiles_in_line(const struct grid *grid)
{
	unsigned int width = grid->digits + 5, used = grid->title_width + 1;

	return grid->columns >= used + 2 * width ? (grid->columns - used) / width : 1;
}

static const char *bar_of(const struct picture *picture, const struct tile *tile, const struct tile *before)
{
	const char *bar = " ";

	if (tile->is_singleton)
		bar = singleton_bar(picture);
	else if (!before || tile->row != before->row || tile->group != before->group)
		bar = terminal_draws(picture->terminal) ? "│" : "|";
	return bar;
}

/* Draws the tile behind its bar: " 14 A ". */
static void draw_tile(const struct picture *picture, const struct grid *grid, const struct tile *tile, bool is_last)
{
	bool is_lent;
	unsigned int label = label_of(picture, tile->tpc, &is_lent);

	begin_colour(picture, label);
	fprintf(picture->page, " %*u ", (int)grid->digits, tile->tpc);
	print_label(picture, label);
	if (is_lent)
		putc('+', picture->page);
	else
		fputs(is_last && picture->terminal->colours == TERMINAL_PLAIN ? "" : " ", picture->page);
	end_colour(picture);
}

static void draw_grid(const struct picture *picture)
{
	struct grid grid;
	char title[TITLE_MAX];
	unsigned int room, in_line = 0, count = picture->gpu->tpc_count;

	lay_out(&grid, picture);
	room = tiles_in_line(&grid);
	for (unsigned int i = 0; i < count; i++) {
		const struct tile *tile = &grid.tiles[i], *before = i > 0 ? tile - 1 : NULL;
		bool new_row = !before || tile->row != before->row;

		if (new_row || in_line == room) {
			row_title(&grid, tile->row, title);
			fprintf(picture->page, "%*s ", -(int)grid.title_width, new_row ? title : "");
			in_line = 0;
		}
		in_line++;
		bool is_last = i + 1 == count || tile[1].row != tile->row || in_line == room;

		fputs(bar_of(picture, tile, before), picture->page);
		draw_tile(picture, &grid, tile, is_last);
		fputs(is_last ? "\n" : "", picture->page);
	}
}

/* --- the legend -------------------------------------------------------------------------------------------------- */

static const struct column legend_columns[] = {
	{.heading = "PID", .what = CELL_PID, .is_number = true},
	{.heading = "USER", .what = CELL_USER},
	{.heading = "TPCS", .what = CELL_TPCS},
	{.heading = "LENDING", .what = CELL_LENDING, .may_be_missing = true},
	{.heading = "COMMAND", .what = CELL_COMMAND},
};

static void begin_entry(const struct picture *picture, unsigned int label)
{
	begin_colour(picture, label);
	putc(' ', picture->page);
	print_label(picture, label);
	putc(' ', picture->page);
	end_colour(picture);
}

#define ENTRY_WIDTH 4

static void print_table(const struct picture *picture, const struct row *rows, size_t count)
{
	struct table table = {.columns = legend_columns, .column_count = COUNT(legend_columns), .items = rows,
	                      .item_size = sizeof *rows, .item_count = count, .cell = cell_of_row,
	                      .utf8 = picture->terminal->utf8};
	unsigned int columns = picture->terminal->columns;

	table_fit(&table, columns > ENTRY_WIDTH ? columns - ENTRY_WIDTH : 0);
	fprintf(picture->page, "%*s", ENTRY_WIDTH, "");
	table_print_headings(&table, COLUMNS_MAX, NULL, picture->page);
	for (size_t i = 0; i < count; i++) {
		putc('\n', picture->page);
		begin_entry(picture, labels_find(picture->labels, rows[i].process->pid));
		putc(' ', picture->page);
		table_print_row(&table, i, picture->page);
	}
	putc('\n', picture->page);
}

/* Without memory, there is no legend. */
static void print_occupants(const struct picture *picture)
{
	const struct processes *processes = picture->processes;
	struct row *rows = calloc(processes->count + 1, sizeof *rows);
	size_t count = 0;

	for (size_t i = 0; rows && i < processes->count; i++) {
		const struct tpcset *set = process_set(&processes->list[i], picture->gpu->pci);

		if (set)
			rows[count++] = (struct row){.process = &processes->list[i], .has_gpu = true, .set = set};
	}
	if (count > 0)
		print_table(picture, rows, count);
	free(rows);
}

/* " # A+B: TPCs 4-7" */
static void print_shared(const struct picture *picture, const struct shared *shared)
{
	char list[TPCSET_TEXT], separator = ' ';

	begin_entry(picture, SHARED);
	for (size_t i = 0; i < picture->processes->count; i++) {
		const struct process *process = &picture->processes->list[i];

		if (process_shares(process, shared)) {
			fprintf(picture->page, "%c%c", separator,
			        labels_letter(labels_find(picture->labels, process->pid)));
			separator = '+';
		}
	}
	fprintf(picture->page, ": TPCs %s\n", tpcset_format_list(&shared->tpcs, list));
}

static void print_legend(const struct picture *picture)
{
	bool singletons = false, are_lent = false, is_lent;

	print_occupants(picture);
	for (size_t i = 0; i < picture->processes->shared_count; i++) {
		if (pci_address_equal(picture->processes->shared[i].gpu, picture->gpu->pci))
			print_shared(picture, &picture->processes->shared[i]);
	}
	for (unsigned int tpc = 0; tpc < picture->gpu->tpc_count; tpc++) {
		singletons = singletons || gpcs_is_singleton(picture->gpu, tpc);
		label_of(picture, tpc, &is_lent);
		are_lent = are_lent || is_lent;
	}
	begin_entry(picture, FREE);
	fputs(" free\n", picture->page);
	if (are_lent)
		fputs(" +  lent, and in use by others now\n", picture->page);
	if (singletons)
		fprintf(picture->page, " %s  a single TPC, in no virtual GPC\n", singleton_bar(picture));
}

/* ------------------------------------------------------------------------------------------------------------------ */

static void print_title(const struct picture *picture, const char *label)
{
	const struct topology *gpu = picture->gpu;
	unsigned int free = 0;
	bool is_lent;
	char pci[PCI_ADDRESS_TEXT], name[TEXT_ROOM(TOPOLOGY_NAME_MAX)];

	for (unsigned int tpc = 0; tpc < gpu->tpc_count; tpc++)
		free += label_of(picture, tpc, &is_lent) == FREE;
	pci_address_format(gpu->pci, pci);
	fprintf(picture->page, "GPU %s", label);
	if (gpu->name[0] != '\0') {
		fputs(", ", picture->page);
		text_print(picture->page, text_clean(name, gpu->name, strlen(gpu->name)), TEXT_WHOLE,
		           picture->terminal->utf8);
	}
	if (strcmp(label, pci) != 0)
		fprintf(picture->page, ", %s", pci);
	fprintf(picture->page, ": %u TPCs of %u SM%s, %u free\n", gpu->tpc_count, gpu->sms_per_tpc,
	        gpu->sms_per_tpc == 1 ? "" : "s", free);
}

/* `label` names the GPU as -G does. */
static void picture_draw(const struct topology *gpu, const char *label, const struct processes *processes,
                         const struct labels *labels, const struct terminal *terminal, FILE *page)
{
	struct picture picture = {
		.gpu = gpu, .processes = processes, .labels = labels, .terminal = terminal, .page = page};

	print_title(&picture, label);
	putc('\n', page);
	draw_grid(&picture);
	putc('\n', page);
	print_legend(&picture);
}

/* --- nvtaskset -T ------------------------------------------------------------------------------------------------- */

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
	return processes_find_shared(&subject->processes, error);
}

static int draw_gpus(void *context, const struct terminal *terminal, FILE *page, struct error *error)
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
	struct watch picture = {.subject = &subject, .update = update, .draw = draw_gpus, .is_data = options->json};

	subject.json = options->json;
	subject.again = options->watch_seconds > 0;
	if (topology_load(&subject.gpus, error) < 0 || choose(&subject, &options->gpus, error) < 0)
		return -1;
	int result = watch(&picture, options->watch_seconds, !subject.again, error);

	processes_free(&subject.processes);
	return result;
}
