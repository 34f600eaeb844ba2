/* nvtaskset top: what is shown of a look, what keys do, and that every page fits its terminal. */
#include "../cases.h"
#include "sets.h"
#include "../../tools/nvtaskset/cli/gpus.c"
#define add add_process /* two files have one */
#include "../../tools/nvtaskset/show/processes.c"
#undef add
#include "../../tools/nvtaskset/show/cells.c"
#include "../../tools/nvtaskset/show/table.c"
#include "../../tools/nvtaskset/terminal/text.c"
#include "../../tools/nvtaskset/top/keys.c"
#include "../../tools/nvtaskset/top/layout.c"
#include "../../tools/nvtaskset/top/model.c"

#include <locale.h>

static const struct pci_address first_gpu = {.bus = 0x3b}, second_gpu = {.bus = 0x5e};

/* --- pages ------------------------------------------------------------------------------------------------------------ */

/* It holds until the next one. */
static const char *draw(const struct model *model, const struct view *view, const struct terminal *terminal)
{
	static char text[1 << 20];
	FILE *page = fmemopen(text, sizeof text, "w");
	struct error error;

	assert_int_equal(layout_draw(model, view, terminal, page, &error), 0);
	fclose(page);
	return text;
}

static const struct reading unknown = {.is_known = false};

static struct process *process_of(int pid, const char *user, const char *command)
{
	static struct process processes[128];
	static unsigned int next;
	struct process *process = &processes[next++ % COUNT_OF(processes)];

	*process = (struct process){.pid = pid, .user = (char *)user, .command = (char *)command};
	return process;
}

static struct row row_with(int pid, const char *command, struct reading busy, struct reading rate)
{
	static struct tpcset set;
	struct row row = {.process = process_of(pid, "ana", command), .has_gpu = true, .gpu = "0", .set = &set, .pci = first_gpu};

	set = range(0, 32);
	row.numbers[NUMBER_BUSY] = busy;
	row.numbers[NUMBER_RATE] = rate;
	row.numbers[NUMBER_IN_FLIGHT] = reading_of(2);
	row.numbers[NUMBER_TPC_SHARE] = reading_if(busy.is_known, busy.value / 2);
	row.numbers[NUMBER_BUSY_TIME] = reading_if(busy.is_known, busy.value * 100);
	return row;
}

/* A model of these rows. */
static struct model model_of(struct row *rows, size_t count)
{
	struct model model = {.row_count = count, .rows = rows, .all_count = count, .all = rows, .gpu_count = 1, .delay = 1};

	model.gpus[0] = (struct top_gpu){.label = "0", .name = "NVIDIA H200", .pci = first_gpu};
	return model;
}

static const struct terminal file = {.columns = TERMINAL_ENDLESS, .rows = TERMINAL_ENDLESS};
static const struct view by_busy = {.sort = TOP_BUSY};

TEST(a_page)
{
	struct row rows[] = {row_with(16013, "./train --all", reading_of(0.912), reading_of(20341)),
	                     row_with(16014, "./infer", reading_of(0.3), reading_of(4.2))};
	struct model model = model_of(rows, COUNT_OF(rows));

	assert_string_equal(draw(&model, &by_busy, &file),
	                    "nvtaskset top: 2 programs, over 1 s\n"
	                    "GPU 0 [16013=====================|16014===|                        ]  60.6% NVIDIA H200\n"
	                    "  PID USER GPU TPCS BUSY% TPC% KERNELS/s INFLIGHT    TIME COMMAND\n"
	                    "16013 ana  0   0-32  91.2 45.6     20341        2 1:31.20 ./train --all\n"
	                    "16014 ana  0   0-32  30.0 15.0       4.2        2 0:30.00 ./infer\n");
}

/* Of the page: the GPU's bar, a program's row, and the line below the rows. */
static void assert_shows(const struct model *model, const char *bar, const char *row, const char *last)
{
	const char *page = draw(model, &by_busy, &file), *end = page + strlen(page) - strlen(last);

	assert_non_null(strstr(page, text_of("\nGPU 0 [%s NVIDIA H200\n", bar)));
	assert_non_null(strstr(page, text_of("\n%s\n", row)));
	assert_string_equal(end, last);
}

TEST(what_is_not_known_is_not_0)
{
	struct row rows[] = {row_with(7, "./infer", unknown, unknown), row_with(8, "./idle", reading_of(0), reading_of(0))};
	struct model model = model_of(rows, 1);

	rows[0].numbers[NUMBER_IN_FLIGHT] = unknown;
	model.why_no_times = "nobody measures";
	assert_shows(&model, "not known                                                   ]     -",
	             "  7 ana  0   0-32     -    -         -        -    - ./infer",
	             "\nTimes that are not known: nobody measures.\n");
	assert_non_null(strstr(draw(&model, &by_busy, &file), "nvtaskset top: 1 program, over"));
	/* Where one program's share is not known, the sum is not, either. */
	model = model_of(rows, 2);
	assert_shows(&model, "                                                            ]     -",
	             "  7 ana  0   0-32     -    -         -        -       - ./infer",
	             "\n  8 ana  0   0-32   0.0  0.0       0.0        2 0:00.00 ./idle\n");
}

#define PRESENT "\np: present, not busy: without MPS, others' turns are in BUSY%, TPC% and TIME.\n"

TEST(what_busy_contains_is_marked)
{
	struct row rows[] = {row_with(7, "./train", reading_of(0.9), reading_of(10)),
	                     row_with(8, "./infer", reading_of(0.8), reading_of(4))};
	struct model model = model_of(rows, 1);

	/* Alone, it has the bar; where others take turns with it, nobody knows how much is whose. */
	rows[0].is_presence = rows[1].is_presence = model.some_are_present = true;
	assert_shows(&model, "7=========================|                                 ]  45.0%",
	             "  7 ana  0   0-32 90.0p 45.0        10        2 1:30.00 ./train", PRESENT);
	model = model_of(rows, 2);
	model.some_are_present = true;
	assert_shows(&model, "in turns                                                    ]     -",
	             "  8 ana  0   0-32 80.0p 40.0       4.0        2 1:20.00 ./infer", PRESENT);
	rows[0].is_presence = rows[1].is_presence = false;
	rows[0].shares = true;
	model = model_of(rows, 1);
	model.some_share = true;
	assert_shows(&model, "7=========================|                                 ]  45.0%",
	             "  7 ana  0   0-32 90.0* 45.0        10        2 1:30.00 ./train",
	             "\n*: shares TPCs, and is busy, too, while it waits there for a neighbour.\n");
	/* Together they have 130 %, since times in TPCs that they share count for both. */
	rows[1].numbers[NUMBER_TPC_SHARE] = reading_of(0.85);
	model = model_of(rows, 2);
	assert_non_null(strstr(draw(&model, &by_busy, &file), "] 100.0% NVIDIA H200\n"));
}

/* --- every page fits ---------------------------------------------------------------------------------------------------- */

static struct reading some_reading(double largest)
{
	return some_below(4) == 0 ? unknown : reading_of(largest * some_below(1000) / 999);
}

#define ROWS_MAX 60

static struct row some_row(int pid)
{
	static const char *const commands[] = {"./train", "\xe6\xbc\xa2\xe5\xad\x97 \xf0\x9f\x98\x80", "a",
	                                       "python3 -m long.module --with=many --arguments=", "\xef\xbf\xbd[2J"};
	static const char *const users[] = {"ana", "root", "a-user-with-a-very-long-name@example.com", "\xc3\xa9ric"};
	static struct tpcset sets[2];
	struct process *process = process_of(pid, users[some_below(4)], commands[some_below(5)]);
	struct row row = {.process = process, .has_gpu = some_below(5) > 0,
	                  .set = some_below(3) == 0 ? NULL : &sets[some_below(2)]};

	sets[0] = range(0, 7);
	for (unsigned int tpc = 0; tpc < 40; tpc += 2)
		tpcset_add_range(&sets[1], tpc, tpc);
	row.numbers[NUMBER_BUSY] = some_reading(1);
	row.numbers[NUMBER_TPC_SHARE] = some_reading(1.2);
	row.numbers[NUMBER_RATE] = some_reading(1e9);
	row.numbers[NUMBER_IN_FLIGHT] = some_reading(1e6);
	row.numbers[NUMBER_BUSY_TIME] = some_reading(1e6);
	row.pci = some_below(2) ? first_gpu : second_gpu;
	strcpy(row.gpu, !row.has_gpu ? "" : some_below(2) ? "0" : "0000:3b:00.0");
	process->time.state = some_below(2) ? SEGMENT_TIME_IN_FORCE : SEGMENT_TIME_NONE;
	if (some_below(2))
		process->revision.quota = (struct segment_quota){.run_us = some_below(2) ? 30000 : 9999999, .period_us = 10000000};
	if (some_below(2))
		process->revision.rank =
			(struct segment_rank){segment_rank_of_priority(some_below(100)), 1 + some_below(10000), some_below(2)};
	return row;
}

static struct model some_model(struct row rows[ROWS_MAX], struct kernel_activity *kernel)
{
	struct model model = {.row_count = some_below(ROWS_MAX), .rows = rows, .all = rows, .gpu_count = some_below(5), .delay = 0.5,
	                      .kernels = kernel, .kernel_count = some_below(2), .some_are_hidden = some_below(2)};
	int pid = 1;

	model.all_count = model.row_count;
	for (size_t i = 0; i < model.row_count; i++)
		rows[i] = some_row(pid += (int)some_below(1000000));
	for (unsigned int i = 0; i < model.gpu_count; i++)
		model.gpus[i] = (struct top_gpu){.label = "0000:3b:00.0", .name = "NVIDIA \xe6\xbc\xa2",
		                                 .pci = i % 2 ? second_gpu : first_gpu};
	model.pid = some_below(3) == 0 ? 7 : 0;
	model.has_ended = some_below(2);
	model.why_no_times = some_below(2) ? "a reason" : NULL;
	model.why_no_kernels = some_below(2) ? "a reason" : NULL;
	return model;
}

static struct view some_view(void)
{
	struct view view = {.sort = (enum top_column)some_below(TOP_COLUMN_COUNT), .prompt = (enum prompt)some_below(3),
	                    .first = some_below(100), .is_paused = some_below(2), .is_help = some_below(5) == 0};

	strcpy(view.search, some_below(2) ? "train" : "");
	strcpy(view.user, some_below(3) ? "" : "\033[2J\xff");
	return view;
}

/* Without the sequences that set attributes. */
static void strip(char *text)
{
	char *to = text;

	for (; *text; text++) {
		if (*text == '\033')
			text += strcspn(text, "m");
		else
			*to++ = *text;
	}
	*to = '\0';
}

static void assert_fits(const char *page, const struct terminal *terminal)
{
	unsigned int lines = 0;
	bool has_headings = false;

	for (const char *line = page, *end; *line; line = end + 1) {
		char text[8192];

		end = strchr(line, '\n');
		assert_true(end && (size_t)(end - line) < sizeof text);
		snprintf(text, sizeof text, "%.*s", (int)(end - line), line);
		assert_true(text_width(text, terminal->utf8) <= terminal->columns);
		/* No bytes but ours reach the terminal. */
		assert_null(strstr(text, "\033[2J"));
		strip(text);
		has_headings = has_headings || (strstr(text, "PID ") && strstr(text, "COMMAND"));
		lines++;
	}
	assert_each(lines <= terminal->rows, true, has_headings, true);
}

TEST(every_page_fits)
{
	static struct row rows[ROWS_MAX];
	char name[] = "void gemm<float, (int)128>(float const*, float*)";
	struct kernel_activity kernel = {.name = name};

	kernel.numbers[KERNEL_INSTANCES] = reading_of(1e9);
	kernel.numbers[KERNEL_SHARE] = reading_of(1);
	kernel.numbers[KERNEL_TOTAL] = reading_of(1e12);

	if (!setlocale(LC_CTYPE, "C.UTF-8"))
		skip_because("needs the locale C.UTF-8");
	for (unsigned int columns = 20; columns <= 300; columns++) {
		for (unsigned int round = 0; round < 20; round++) {
			struct terminal terminal = {.is_terminal = true, .moves_cursor = some_below(4) > 0, .utf8 = some_below(4) > 0,
			                            .columns = columns, .rows = round < 12 ? round + 1 : 1 + some_below(80),
			                            .colours = (enum terminal_colours)some_below(3)};
			struct model model = some_model(rows, &kernel);
			struct view view = some_view();

			assert_fits(draw(&model, &view, &terminal), &terminal);
		}
	}
}

/* The last row can be reached, and what is typed is always to be seen. */
TEST(scrolling_shows_every_row)
{
	static struct row rows[ROWS_MAX];
	const struct terminal terminal = {.is_terminal = true, .columns = 100, .rows = 12};

	for (int i = 0; i < ROWS_MAX; i++)
		rows[i] = row_with(1000 + i, "./infer", unknown, unknown);
	struct model model = model_of(rows, ROWS_MAX);

	for (int i = 0; i < ROWS_MAX; i++) {
		struct view view = {.sort = TOP_PID, .first = (size_t)i};

		assert_non_null(strstr(draw(&model, &view, &terminal), text_of("%d", 1000 + i)));
	}
	struct view typing = {.sort = TOP_PID, .prompt = PROMPT_SEARCH, .search = "foo"};

	for (unsigned int height = 2; height < 12; height++) {
		struct terminal low = {.is_terminal = true, .columns = 40, .rows = height};

		assert_non_null(strstr(draw(&model, &typing, &low), "Search: foo_\n"));
	}
}

TEST(no_escape_sequence_where_none_belongs)
{
	struct row rows[] = {row_with(7, "./infer", reading_of(0.5), reading_of(10))};
	struct model model = model_of(rows, 1);
	struct terminal plain = {.is_terminal = true, .columns = 100, .rows = 24};
	struct terminal no_colour = {.is_terminal = true, .moves_cursor = true, .columns = 100, .rows = 24};

	assert_null(strchr(draw(&model, &by_busy, &plain), '\033'));
	/* NO_COLOR: reverse and bold, and no colours. */
	const char *page = draw(&model, &by_busy, &no_colour);

	assert_non_null(strstr(page, "\033[7m"));
	assert_true(!strstr(page, "\033[3") && !strstr(page, "\033[4"));
}

/* --- rows --------------------------------------------------------------------------------------------------------------- */

static struct process listed[3];
static struct row listed_rows[3];

/* Three programs of two users; the second one's times are not known. */
static struct activities look(void)
{
	static const char *const users[] = {"bob", "ana", "bob"}, *const commands[] = {"c", "b", "a"};
	static struct topology_list none;

	for (int i = 0; i < 3; i++) {
		listed[i] = (struct process){.pid = 10 + i, .user = (char *)users[i], .command = (char *)commands[i]};
		listed_rows[i] = (struct row){.process = &listed[i], .has_gpu = true, .pci = first_gpu};
		listed_rows[i].numbers[NUMBER_RATE] = reading_of(i);
		listed_rows[i].numbers[NUMBER_BUSY] = reading_of(i / 2.0);
		listed_rows[i].numbers[NUMBER_BUSY_TIME] = reading_of(2 - i);
	}
	listed[0].revision.quota = (struct segment_quota){.run_us = 3000, .period_us = 10000};
	listed[1].revision.quota = (struct segment_quota){.run_us = 500000, .period_us = 1000000};
	listed[2].revision.rank = (struct segment_rank){.priority = segment_rank_of_priority(0), .weight = 7};
	listed[1].revision.rank = (struct segment_rank){.priority = segment_rank_of_priority(80)};
	listed_rows[1].numbers[NUMBER_BUSY] = listed_rows[1].numbers[NUMBER_BUSY_TIME] = unknown;
	listed_rows[1].why_no_times = "a profiler";
	return (struct activities){.gpus = &none, .count = 3, .list = listed_rows, .processes = {.count = 3, .list = listed}};
}

static void assert_order(enum top_column sort, const char *user, const char *pids)
{
	struct activities activities = look();
	struct view view = {.sort = sort};
	struct model model;
	struct error error;
	char order[64] = "";

	strcpy(view.user, user);
	assert_int_equal(model_make(&model, &activities, &view, &error), 0);
	for (size_t i = 0; i < model.row_count; i++)
		snprintf(order + strlen(order), sizeof order - strlen(order), "%d ", (int)model.rows[i].process->pid);
	assert_string_equal(order, pids);
	assert_int_equal(model.all_count, 3);
	assert_string_equal(model.why_no_times, "a profiler");
	model_free(&model);
}

TEST(sorting_and_users)
{
	assert_order(TOP_PID, "", "10 11 12 ");
	assert_order(TOP_USER, "", "11 12 10 ");
	assert_order(TOP_BUSY, "", "12 10 11 "); /* what is not known comes last */
	assert_order(TOP_TIME, "", "10 12 11 ");
	assert_order(TOP_RATE, "", "12 11 10 ");
	assert_order(TOP_COMMAND, "", "12 11 10 ");
	assert_order(TOP_WAITING, "", "12 11 10 "); /* all unknown: by the rate */
	assert_order(TOP_QUOTA, "", "11 10 12 "); /* who has none comes last */
	assert_order(TOP_PRIORITY, "", "11 12 10 ");
	assert_order(TOP_WEIGHT, "", "12 11 10 ");
	assert_order(TOP_PID, "bo", "10 12 ");
	assert_order(TOP_PID, "eve", "");
}

/* --- keys --------------------------------------------------------------------------------------------------------------- */

static void assert_keys(const char *bytes, const int *keys, size_t count)
{
	size_t length = strlen(bytes), i = 0;

	for (; length > 0; i++) {
		assert_true(i < count);
		assert_int_equal(key_next(&bytes, &length), keys[i]);
	}
	assert_int_equal(i, count);
}

#define ASSERT_KEYS(bytes, ...) assert_keys(bytes, (const int[]){__VA_ARGS__}, COUNT_OF(((const int[]){__VA_ARGS__})))

TEST(keys)
{
	ASSERT_KEYS("qP", 'q', 'P');
	ASSERT_KEYS("\033[21~", KEY_F10);
	ASSERT_KEYS("\033[17~\033[A\033OB<", KEY_F6, KEY_UP, KEY_DOWN, '<');
	ASSERT_KEYS("\033[5~\033[6~\033[H\033[4~", KEY_PAGE_UP, KEY_PAGE_DOWN, KEY_HOME, KEY_END);
	ASSERT_KEYS("\033", KEY_ESCAPE);
	ASSERT_KEYS("\033q", KEY_ESCAPE, 'q');
	ASSERT_KEYS("\033[", KEY_NONE);
	ASSERT_KEYS("\033O", KEY_NONE);
	ASSERT_KEYS("\033[1;5Aq", KEY_NONE, 'q'); /* with a modifier: not used here, and no other key */
	ASSERT_KEYS("\xc3\xa9", 0xc3, 0xa9);
}

static struct row typed_rows[30];

/* Types into a view of 30 rows, of which the table shows 10. False if that ended the program. */
static bool type(struct view *view, const char *bytes)
{
	struct model model = model_of(typed_rows, COUNT_OF(typed_rows));
	size_t length = strlen(bytes);
	bool goes_on = true;

	for (size_t i = 0; i < COUNT_OF(typed_rows); i++)
		typed_rows[i] = row_with(100 + (int)i, i == 20 ? "./Train" : i == 25 ? "./train again" : "./infer", unknown, unknown);
	while (length > 0 && goes_on)
		goes_on = keys_take(view, key_next(&bytes, &length), &model, 10);
	return goes_on;
}

TEST(commands)
{
	struct view view = by_busy;

	assert_true(type(&view, "T"));
	assert_int_equal(view.sort, TOP_TIME);
	type(&view, "P");
	assert_int_equal(view.sort, TOP_BUSY);
	type(&view, ">\033[17~<");
	assert_int_equal(view.sort, TOP_TPC);
	view.sort = TOP_PID;
	type(&view, "<");
	assert_int_equal(view.sort, TOP_COMMAND);
	type(&view, ">");
	assert_int_equal(view.sort, TOP_PID);
	assert_true(type(&view, "Z") && view.is_paused);
	assert_true(type(&view, "Z") && !view.is_paused);
	assert_true(type(&view, "?") && view.is_help);
	assert_true(type(&view, "q") && !view.is_help); /* back from the help */
	assert_true(type(&view, "\033\001xyz\033[99~"));
	assert_false(type(&view, "q"));
}

/* It is then at this row. */
static void assert_typed(struct view *view, const char *bytes, size_t first)
{
	type(view, bytes);
	assert_int_equal(view->first, first);
}

TEST(typing)
{
	struct view view = by_busy;
	char many[200];

	type(&view, "/train");
	assert_each(view.prompt, PROMPT_SEARCH, view.first, 20);
	type(&view, "\r");
	assert_int_equal(view.prompt, PROMPT_NONE);
	assert_string_equal(view.search, "train");
	assert_typed(&view, "n", 25);
	assert_typed(&view, "n", 20);
	assert_typed(&view, "/103\r", 3);
	assert_typed(&view, "/nobody\r", 3);
	type(&view, "/x\033");
	assert_string_equal(view.search, "");
	/* Letters are text now, no commands. */
	assert_true(type(&view, "uqZ\xc3\xa9\x7f\x7f\r"));
	assert_string_equal(view.user, "q");
	assert_false(view.is_paused);
	type(&view, "u\x7f\r");
	assert_string_equal(view.user, "");
	memset(many, 'x', sizeof many - 1);
	many[0] = 'u';
	many[sizeof many - 1] = '\0';
	type(&view, many);
	assert_int_equal(strlen(view.user), VIEW_TEXT - 1);
}

RUN_TESTS(NULL, NULL)
