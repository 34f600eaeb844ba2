#include "model.h"

#include "base/extremes.h"
#include "terminal/text.h"

#include <stdlib.h>
#include <string.h>

/* --- lines -------------------------------------------------------------------------------------------------------- */

struct sheet {
	const struct terminal *terminal;
	FILE *page;
	unsigned int lines; /* the number of lines */
	FILE *line;         /* the line in the making */
	char *text;
	size_t length;
};

/* Every line is first written here, and then cut. */
static void end_line(struct sheet *sheet)
{
	putc('\0', sheet->line);
	fflush(sheet->line);
	if (sheet->lines < sheet->terminal->rows && sheet->text) {
		text_print(sheet->page, sheet->text, sheet->terminal->columns, sheet->terminal->utf8);
		putc('\n', sheet->page);
		sheet->lines++;
	}
	rewind(sheet->line);
}

enum style {
	STYLE_HEADINGS,
	STYLE_SORTED,
	STYLE_MATCH,
	STYLE_WEAK
};

/* Styles without colours: allowed under NO_COLOR. */
static const char *const styles[] = {"\033[7m", "\033[1;4m", "\033[1m", "\033[2m"};

static const char *begin_style(const struct sheet *sheet, enum style style)
{
	return sheet->terminal->moves_cursor ? styles[style] : "";
}

static const char *end_style(const struct sheet *sheet)
{
	return sheet->terminal->moves_cursor ? "\033[m" : "";
}

/* --- the table of programs ---------------------------------------------------------------------------------------- */

_Static_assert(TOP_COLUMN_COUNT <= COLUMNS_MAX && KERNEL_NUMBER_COUNT + 1 <= COLUMNS_MAX, "there is room");

static struct table table_of_programs(const struct model *model, const struct terminal *terminal)
{
	struct table table = {.columns = top_columns, .column_count = TOP_COLUMN_COUNT, .items = model->rows,
	                      .item_size = sizeof model->rows[0], .item_count = model->row_count, .cell = cell_of_row,
	                      .utf8 = terminal->utf8};

	table_fit(&table, terminal->columns);
	return table;
}

/* A row of headings in reverse, as wide as the terminal. */
static void draw_headings(struct sheet *sheet, const struct table *table, unsigned int sorted)
{
	char again[32];
	const char *marks[] = {begin_style(sheet, STYLE_SORTED), again};

	snprintf(again, sizeof again, "%s%s", end_style(sheet), begin_style(sheet, STYLE_HEADINGS));
	fputs(begin_style(sheet, STYLE_HEADINGS), sheet->line);
	table_print_headings(table, sorted, marks, sheet->line);
	if (sheet->terminal->moves_cursor)
		fprintf(sheet->line, "%*s", (int)sheet->terminal->columns, "");
	fputs(end_style(sheet), sheet->line);
	end_line(sheet);
}

static void draw_row(struct sheet *sheet, const struct table *table, size_t row, bool matches)
{
	fputs(matches ? begin_style(sheet, STYLE_MATCH) : "", sheet->line);
	table_print_row(table, row, sheet->line);
	fputs(matches ? end_style(sheet) : "", sheet->line);
	end_line(sheet);
}

/* --- the kernels of a program ------------------------------------------------------------------------------------- */

static const struct column kernel_columns[] = {
#define KERNEL_COLUMN(identifier, member, is_integer, heading, rank) \
	{heading, KERNEL_##identifier, true, rank, 0, true},
	KERNEL_NUMBERS(KERNEL_COLUMN)
#undef KERNEL_COLUMN
	{.heading = "NAME", .what = KERNEL_NUMBER_COUNT},
};

static const char *kernel_cell(const void *item, unsigned int what, char text[CELL_MAX])
{
	const struct kernel_activity *kernel = item;
	const char *cell;

	if (what == KERNEL_NUMBER_COUNT)
		cell = kernel->name;
	else if (what == KERNEL_SHARE)
		cell = cell_percent(kernel->numbers[what], text);
	else if (what == KERNEL_OVERRUNS && !kernel->numbers[what].is_known)
		cell = "";
	else if (what == KERNEL_INSTANCES || what == KERNEL_TIMED || what == KERNEL_OVERRUNS)
		cell = cell_count(kernel->numbers[what], 0, text);
	else
		cell = cell_duration(kernel->numbers[what], text);
	return cell;
}

/* The last of `count` lines has the number of further kernels. */
static void draw_kernels(struct sheet *sheet, const struct model *model, const struct view *view, size_t first,
                         size_t count)
{
	size_t left = model->kernel_count - first, shown = left <= count ? left : count > 0 ? count - 1 : 0;

	struct table table = {.columns = kernel_columns, .column_count = KERNEL_NUMBER_COUNT + 1,
	                      .items = model->kernels, .item_size = sizeof model->kernels[0],
	                      .item_count = model->kernel_count, .cell = kernel_cell,
	                      .utf8 = sheet->terminal->utf8};

	if (model->why_no_kernels) {
		fprintf(sheet->line, "kernels are not known: %s", model->why_no_kernels);
		end_line(sheet);
		return;
	}
	table_fit(&table, sheet->terminal->columns);
	draw_headings(sheet, &table, COLUMNS_MAX);
	for (size_t i = first; i < first + shown; i++)
		draw_row(sheet, &table, i, model_kernel_matches(&model->kernels[i], view->search));
	if (shown < left && count > 0) {
		fprintf(sheet->line, "(%zu more kernels)", left - shown);
		end_line(sheet);
	}
}

/* --- a bar for each GPU ------------------------------------------------------------------------------------------- */

#define BAR_MIN 12
#define BAR_MAX 60

/* The programs' parts of the GPU's TPCs and time. Leaves out unknown times, and times of programs that take turns: the
 * times of a program then contain times of its neighbours. */
struct load {
	unsigned int programs, known;
	bool is_in_turns;
	double share;
};

static struct load load_of(const struct model *model, const struct top_gpu *gpu)
{
	struct load load = {.programs = 0};

	for (size_t i = 0; i < model->all_count; i++) {
		const struct row *row = &model->all[i];
		bool is_here = row->has_gpu && pci_address_equal(row->pci, gpu->pci);

		load.programs += is_here;
		load.known += is_here && row->numbers[NUMBER_TPC_SHARE].is_known;
		load.is_in_turns = load.is_in_turns || (is_here && row->is_presence);
		load.share += is_here ? row->numbers[NUMBER_TPC_SHARE].value : 0;
	}
	load.is_in_turns = load.is_in_turns && load.programs > 1;
	/* Times in shared TPCs count for each program. */
	load.share = load.share < 1 ? load.share : 1;
	return load;
}

/* The pid, and then the program's part of the bar. */
static void draw_part(struct sheet *sheet, int pid, size_t cells, unsigned int number)
{
	static const char *const colours[] = {"30;46", "30;43", "30;45", "30;42"};
	bool has_colours = sheet->terminal->colours != TERMINAL_PLAIN;
	char text[BAR_MAX + 12];

	memset(text, '=', sizeof text);
	int digits = snprintf(text, sizeof text, "%d", pid);

	text[digits] = '=';
	if ((size_t)digits >= cells)
		memset(text, '=', cells);
	text[cells - 1] = '|';
	text[cells] = '\0';
	if (has_colours)
		fprintf(sheet->line, "\033[%sm", colours[number % 4]);
	fputs(text, sheet->line);
	fputs(has_colours ? "\033[m" : "", sheet->line);
}

static size_t cells_of(double share, size_t width)
{
	double cells = share * (double)width + 0.5;

	return cells < (double)width ? (size_t)cells : width;
}

static void draw_bar(struct sheet *sheet, const struct model *model, const struct top_gpu *gpu, size_t width)
{
	unsigned int number = 0;
	size_t done = 0;
	double share = 0;

	for (size_t i = 0; i < model->all_count; i++) {
		const struct row *row = &model->all[i];

		if (row->has_gpu && pci_address_equal(row->pci, gpu->pci) && row->numbers[NUMBER_TPC_SHARE].is_known) {
			share += row->numbers[NUMBER_TPC_SHARE].value;
			size_t end = cells_of(share, width);

			if (end > done)
				draw_part(sheet, (int)row->process->pid, end - done, number);
			done = end > done ? end : done;
			number++;
		}
	}
	fprintf(sheet->line, "%*s", (int)(width - done), "");
}

static void draw_gpu(struct sheet *sheet, const struct model *model, const struct top_gpu *gpu)
{
	struct load load = load_of(model, gpu);
	bool is_known = load.programs > 0 && load.known == load.programs && !load.is_in_turns;
	bool has_name = sheet->terminal->columns >= 80;
	char number[CELL_MAX], words[CELL_MAX];
	size_t used = strlen("GPU  [] 100.0% ") + strlen(gpu->label) +
	              (has_name ? text_width(gpu->name, sheet->terminal->utf8) : 0);
	size_t width = sheet->terminal->columns > used ? sheet->terminal->columns - used : 0;

	width = width > BAR_MAX ? BAR_MAX : width;
	snprintf(number, sizeof number, "%s", cell_percent(reading_if(is_known, load.share), words));
	snprintf(words, sizeof words, "%s", load.programs == 0 ? "no program" : load.known == 0 ? "not known" :
	         load.is_in_turns ? "in turns" : "");
	fprintf(sheet->line, "GPU %s ", gpu->label);
	if (width >= BAR_MIN) {
		putc('[', sheet->line);
		if (words[0] != '\0')
			fprintf(sheet->line, "%s%s%s%*s", begin_style(sheet, STYLE_WEAK), words, end_style(sheet),
			        (int)(width - strlen(words)), "");
		else
			draw_bar(sheet, model, gpu, width);
		putc(']', sheet->line);
	}
	fprintf(sheet->line, "%6s%s%s%s", number, is_known ? "%" : "", has_name ? " " : "", has_name ? gpu->name : "");
	end_line(sheet);
}

static void draw_gpus(struct sheet *sheet, const struct model *model, size_t lines)
{
	size_t shown = model->gpu_count <= lines ? model->gpu_count : lines > 0 ? lines - 1 : 0;

	for (size_t i = 0; i < shown; i++)
		draw_gpu(sheet, model, &model->gpus[i]);
	if (shown < model->gpu_count && lines > 0) {
		fprintf(sheet->line, "(%zu more GPUs)", model->gpu_count - shown);
		end_line(sheet);
	}
}

/* --- further lines ------------------------------------------------------------------------------------------------ */

static size_t count_programs(const struct model *model)
{
	size_t count = 0;

	for (size_t i = 0; i < model->all_count; i++)
		count += i == 0 || model->all[i].process != model->all[i - 1].process;
	return count;
}

static void draw_title(struct sheet *sheet, const struct model *model, const struct view *view, size_t first,
                       size_t rows)
{
	char user[TEXT_ROOM(VIEW_TEXT)];
	size_t programs = count_programs(model),
	       last = first + rows < model->row_count ? first + rows : model->row_count;

	if (model->pid != 0)
		fprintf(sheet->line, "nvtaskset top: pid %d%s", (int)model->pid, model->has_ended ? " has ended" : "");
	else
		fprintf(sheet->line, "nvtaskset top: %zu %s", programs, programs == 1 ? "program" : "programs");
	fputs(view->is_paused ? ", paused, nothing is measured" : "", sheet->line);
	if (view->user[0] != '\0')
		fprintf(sheet->line, ", of %s...", text_clean(user, view->user, strlen(view->user)));
	if (last - first < model->row_count)
		fprintf(sheet->line, ", rows %zu-%zu of %zu", first + 1, last, model->row_count);
	fprintf(sheet->line, ", over %g s", model->delay);
	end_line(sheet);
}

/* Without a sheet, a note is only counted. */
static size_t draw_note(struct sheet *sheet, bool is_told, const char *text, const char *end)
{
	if (sheet && is_told) {
		fprintf(sheet->line, "%s%s.", text, end);
		end_line(sheet);
	}
	return is_told;
}

/* For a single program, the line in place of its kernels says why. Every machine has hidden programs: the user misses a
 * program only if the list is empty. */
static size_t draw_notes(struct sheet *sheet, const struct model *model)
{
	bool tells_why = model->why_no_times && !(model->pid != 0 && model->why_no_kernels);
	bool is_empty = model->pid == 0 && model->all_count == 0;
	size_t count = draw_note(sheet, tells_why, "Times that are not known: ", model->why_no_times);

	count += draw_note(sheet, model->some_are_present, "p: present, not busy: without MPS, others' turns are in "
	                                                   "BUSY%, TPC% and TIME", "");
	count += draw_note(sheet, model->some_share, "*: shares TPCs, and is busy, too, while it waits there for a "
	                                             "neighbour", "");
	count += draw_note(sheet, is_empty, "Programs are shown here that were started with nvtaskset, or that it was "
	                                    "attached to", "");
	return count + draw_note(sheet, is_empty && model->some_are_hidden,
	                         "Programs that you may not look at, those of other users, are not shown", "");
}

/* Typed text is not clean yet. */
static void draw_prompt(struct sheet *sheet, const char *what, const char *typed)
{
	char clean[TEXT_ROOM(VIEW_TEXT)];

	fprintf(sheet->line, "%s: %s_", what, text_clean(clean, typed, strlen(typed)));
	end_line(sheet);
}

static void draw_footer(struct sheet *sheet, const struct view *view)
{
	if (view->prompt == PROMPT_USER) {
		draw_prompt(sheet, "User, or nothing for all", view->user);
	} else if (view->prompt == PROMPT_SEARCH) {
		draw_prompt(sheet, "Search", view->search);
	} else {
		fprintf(sheet->line, "%sq quit  ? help  P busy  T time  < > sort  u user  / search  Z pause%s",
		        begin_style(sheet, STYLE_WEAK), end_style(sheet));
		end_line(sheet);
	}
}

static const char *const help[] = {
	"q F10    quit",
	"P        sort by BUSY%",
	"T        sort by TIME",
	"< > F6   sort by the column before, or behind",
	"u        only users whose names begin so",
	"/        search; n: the next one",
	"Z        pause, and measure nothing; go on",
	"up down  scroll; also by pages, Home, End",
	"k        no signal is sent from here: kill PID ends a program",
	"",
	"BUSY%  time in which its kernels were on the GPU",
	"TPC%   of all TPCs and of the time, what they had",
	"QUOTA  what it may have; (in brackets): not in force",
	"PRIO   who goes first; WEIGHT: in which proportion",
	"TIME   how long it was busy since top began",
	"p      present: others' turns are in it",
	"*      shares TPCs: waiting there is in it",
	"-      not known",
	"",
	"Any key goes back.",
};

static void draw_help(struct sheet *sheet, size_t lines)
{
	for (size_t i = 0; i < sizeof help / sizeof help[0] && i < lines; i++) {
		fputs(help[i], sheet->line);
		end_line(sheet);
	}
}

/* --- the page ----------------------------------------------------------------------------------------------------- */

struct plan {
	size_t title, gpus, notes, rows, kernels, footer;
};

/* The table gets at least half of the remaining lines. */
static struct plan make_plan(const struct model *model, const struct view *view, const struct terminal *terminal)
{
	size_t height = terminal->rows, left = height - 1;
	bool is_endless = height == TERMINAL_ENDLESS, is_typing = view->prompt != PROMPT_NONE;
	struct plan plan = {.footer = !is_endless && left > 0 && (is_typing || height >= 6), .title = height >= 5};

	left -= plan.footer + plan.title;
	plan.gpus = height >= 7 ? min_u64(model->gpu_count, left / 3) : 0;
	left -= plan.gpus;
	plan.notes = height >= 12 ? draw_notes(NULL, model) : 0;
	left -= plan.notes;
	if (model->pid != 0 && height >= 8)
		plan.kernels = min_u64(left - min_u64(left / 2, model->row_count), model->kernel_count + 1);
	plan.rows = left - plan.kernels;
	return plan;
}

/* The rows of all programs are scrolled, or the kernels of a single program. */
static size_t first_of(size_t count, const struct view *view, size_t lines)
{
	size_t most = count > lines ? count - lines : 0;

	return lines == 0 ? 0 : min_u64(view->first, most);
}

static void draw_page(struct sheet *sheet, const struct model *model, const struct view *view)
{
	struct plan plan = make_plan(model, view, sheet->terminal);
	struct table table = table_of_programs(model, sheet->terminal);
	size_t first = model->pid == 0 ? first_of(model->row_count, view, plan.rows) : 0, used;
	size_t kernels = plan.kernels > 0 ? plan.kernels - 1 : 0;

	if (plan.title > 0)
		draw_title(sheet, model, view, first, plan.rows);
	draw_gpus(sheet, model, plan.gpus);
	draw_headings(sheet, &table, view->sort);
	used = sheet->lines;
	if (view->is_help) {
		draw_help(sheet, plan.rows + plan.kernels + plan.notes);
	} else {
		for (size_t i = first; i < first + plan.rows && i < model->row_count; i++)
			draw_row(sheet, &table, i, model_matches(&model->rows[i], view->search));
		if (plan.kernels > 0)
			draw_kernels(sheet, model, view, first_of(model->kernel_count, view, kernels), kernels);
		if (plan.notes > 0)
			draw_notes(sheet, model);
	}
	while (plan.footer > 0 && sheet->lines < used + plan.rows + plan.kernels + plan.notes)
		end_line(sheet);
	if (plan.footer > 0)
		draw_footer(sheet, view);
}

int layout_draw(const struct model *model, const struct view *view, const struct terminal *terminal, FILE *page,
                struct error *error)
{
	struct sheet sheet = {.terminal = terminal, .page = page};

	sheet.line = open_memstream(&sheet.text, &sheet.length);
	if (!sheet.line)
		return error_set(error, "no memory");
	draw_page(&sheet, model, view);
	int result = fclose(sheet.line) == 0 ? 0 : error_set(error, "no memory");

	free(sheet.text);
	return result;
}

size_t layout_rows(const struct model *model, const struct view *view, const struct terminal *terminal)
{
	struct plan plan = make_plan(model, view, terminal);

	return model->pid == 0 ? plan.rows : plan.kernels;
}
