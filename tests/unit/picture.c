/* The picture of a GPU, character by character; the processes' letters; shared TPCs. */
#include "../cases.h"
#include "../../tools/nvtaskset/cli/gpcs.c"
#include "sets.h"
#include "share.h"
#include "../../tools/nvtaskset/show/cells.c"
#include "../../tools/nvtaskset/show/topology.c"
#include "../../tools/nvtaskset/show/processes.c"
#include "../../tools/nvtaskset/show/rows.c"
#include "../../tools/nvtaskset/show/table.c"
#include "../../tools/nvtaskset/terminal/text.c"

#include <locale.h>

static struct topology_list list;

/* A process with one set on the first GPU of the list. */
static struct process process_with(pid_t pid, const char *set)
{
	struct process process = {.pid = pid, .user = "ana", .command = "./infer --all"};

	process.revision.count = 1;
	process.revision.partitions[0] = (struct segment_partition){.pci = list.gpus[0].pci, .set = parse(set)};
	return process;
}

static const struct terminal file = {.columns = TERMINAL_ENDLESS, .rows = TERMINAL_ENDLESS};

/* Of a GPU that nobody uses. */
static void assert_picture(const struct topology *gpu, const struct terminal *terminal, const char *expected)
{
	struct processes none = {.count = 0};
	struct gpu_choices shown = {.count = 1, .choices = {{.gpu = gpu}}};
	struct labels labels = {{0}};
	char *drawn;
	size_t length;
	FILE *page = open_memstream(&drawn, &length);

	labels_update(&labels, &none, &shown);
	picture_draw(gpu, "0", &none, &labels, terminal, page);
	fclose(page);
	assert_string_equal(drawn, expected);
	free(drawn);
}

/* --- pictures ------------------------------------------------------------------------------------------------------- */

TEST(on_a_narrow_utf8_terminal)
{
	const struct terminal narrow = {.is_terminal = true, .moves_cursor = true, .utf8 = true, .columns = 20, .rows = 5};
	const struct topology *gpu = share_read(&list, "h200");
	struct tpcset first = parse("0,6,8,14,16,22,24,30,37,44,51,58,60,62-65");
	struct topology small = *gpu;

	if (!setlocale(LC_CTYPE, "C.UTF-8"))
		skip_because("needs the locale C.UTF-8");
	/* The first two GPCs only, with their TPCs numbered anew. */
	small.tpc_count = 0;
	for (unsigned int tpc = tpcset_next(&first, 0); tpc < TPCSET_MAX; tpc = tpcset_next(&first, tpc + 1))
		small.tpcs[small.tpc_count++] = gpu->tpcs[tpc];
	assert_picture(&small, &narrow,
	               "GPU 0, NVIDIA H200, 0000:00:06.0: 17 TPCs of 2 SMs, 17 free\n"
	               "\n"
	               "GPC 0 │  1 ·    3 ·\n"
	               "         5 ·    7 ·\n"
	               "         8 ·    9 ·\n"
	               "        10 ·   11 ·\n"
	               "        12 ·\n"
	               "GPC 1 │  0 ·    2 ·\n"
	               "         4 ·    6 ·\n"
	               "      ┊ 13 · ┊ 14 ·\n"
	               "      ┊ 15 · ┊ 16 ·\n"
	               "\n"
	               " ·  free\n"
	               " ┊  a single TPC, in no virtual GPC\n");
}

TEST(gpcs_unknown_in_part)
{
	struct topology gpu = *share_read(&list, "h200");

	/* A measured topology: virtual GPCs only. */
	gpu.tpc_count = 3;
	gpu.tpcs[0] = (struct topology_tpc){.gpc = TOPOLOGY_UNKNOWN, .virtual_gpc = 11};
	gpu.tpcs[1] = (struct topology_tpc){.gpc = TOPOLOGY_UNKNOWN, .virtual_gpc = 0};
	gpu.tpcs[2] = (struct topology_tpc){.gpc = TOPOLOGY_UNKNOWN, .virtual_gpc = 6};
	assert_picture(&gpu, &file,
	               "GPU 0, NVIDIA H200, 0000:00:06.0: 3 TPCs of 2 SMs, 3 free\n"
	               "\n"
	               "virtual GPC 0 | 1 .\n"
	               "virtual GPC 6 | 2 .\n"
	               "no GPC        : 0 .\n"
	               "\n"
	               " .  free\n"
	               " :  a single TPC, in no virtual GPC\n");
	/* No GPCs at all, and one SM to a TPC. Two virtual GPCs in one GPC of the chip are separated. */
	gpu.sms_per_tpc = 1;
	for (unsigned int tpc = 0; tpc < 3; tpc++)
		gpu.tpcs[tpc].virtual_gpc = TOPOLOGY_UNKNOWN;
	assert_picture(&gpu, &file,
	               "GPU 0, NVIDIA H200, 0000:00:06.0: 3 TPCs of 1 SM, 3 free\n"
	               "\n"
	               "no GPC | 0 .   1 .   2 .\n"
	               "\n"
	               " .  free\n");
	for (unsigned int tpc = 0; tpc < 3; tpc++)
		gpu.tpcs[tpc] = (struct topology_tpc){.gpc = 5, .virtual_gpc = (uint16_t)(tpc / 2)};
	assert_picture(&gpu, &file,
	               "GPU 0, NVIDIA H200, 0000:00:06.0: 3 TPCs of 1 SM, 3 free\n"
	               "\n"
	               "GPC 5 | 0 .   1 . | 2 .\n"
	               "\n"
	               " .  free\n");
}

TEST(letters_stay)
{
	const struct gpu_choices shown = {.count = 1, .choices = {{.gpu = share_read(&list, "h200")}}};
	struct process array[] = {process_with(10, "0"), process_with(20, "1"), process_with(30, "2")};
	struct processes processes = {.count = 3, .list = array};
	struct labels labels = {{0}};

	labels_update(&labels, &processes, &shown);
	assert_int_equal(labels_letter(labels_find(&labels, 30)), 'C');
	array[0] = process_with(15, "0"); /* 10 has ended */
	labels_update(&labels, &processes, &shown);
	assert_int_equal(labels_letter(labels_find(&labels, 15)), 'A');
	assert_int_equal(labels_letter(labels_find(&labels, 30)), 'C');
	array[1].revision.count = 0; /* no longer on this GPU */
	labels_update(&labels, &processes, &shown);
	assert_int_equal(labels_find(&labels, 20), LABELS_MAX);
}

TEST(more_processes_than_letters)
{
	const struct gpu_choices shown = {.count = 1, .choices = {{.gpu = share_read(&list, "h200")}}};
	struct process array[LABELS_MAX + 1];
	struct processes processes = {.count = LABELS_MAX + 1, .list = array};
	struct labels labels = {{0}};

	for (int i = 0; i <= LABELS_MAX; i++)
		array[i] = process_with(100 + i, "0");
	labels_update(&labels, &processes, &shown);
	assert_int_equal(labels_letter(labels_find(&labels, 125)), 'Z');
	assert_int_equal(labels_letter(labels_find(&labels, 126)), 'a');
	assert_int_equal(labels_letter(labels_find(&labels, 151)), 'z');
	assert_int_equal(labels_letter(labels_find(&labels, 152)), '?');
}

/* --- sharing, and GPCs ------------------------------------------------------------------------------------------------ */

TEST(each_pair_shares_other_tpcs)
{
	struct process array[40];
	struct processes processes = {.count = 40, .list = array};
	struct error error;
	char text[TPCSET_TEXT];

	share_read(&list, "h200");
	for (unsigned int i = 0; i < 40; i++) {
		array[i] = process_with((pid_t)i + 1, "");
		tpcset_add_range(&array[i].revision.partitions[0].set, i, i + 1);
	}
	assert_int_equal(processes_find_shared(&processes, &error), 0);
	assert_int_equal(processes.shared_count, 39);
	assert_string_equal(tpcset_format_list(&processes.shared[38].tpcs, text), "39");
	free(processes.shared);
}

TEST(sums_do_not_wrap_around)
{
	struct process process = {.counters = {.restricted = UINT64_MAX, .unrestricted = 2}};
	struct row row = {.process = &process};

	assert_true(row_find(&row, &list));
	assert_true(row.numbers[NUMBER_UPLOADS].value >= 0x1p64);
	process.counters.reasons[0] = UINT64_MAX - 1;
	process.counters.reasons[SEGMENT_LAUNCHED_BY_KERNELS] = 3;
	assert_true(row_find(&row, &list));
	assert_true(row.numbers[NUMBER_OUTSIDE].value >= 0x1p64);
}

TEST(what_is_left_alone_is_not_outside)
{
	struct process process = {.counters = {.restricted = 9}};
	struct row row = {.process = &process};

	for (int reason = 0; reason < SEGMENT_REASON_COUNT; reason++)
		process.counters.reasons[reason] = reason >= SEGMENT_QUEUE_UNANNOUNCED ? 1000 : 1;
	assert_true(row_find(&row, &list));
	assert_true(row.numbers[NUMBER_OUTSIDE].value == SEGMENT_QUEUE_UNANNOUNCED - 3);
}

TEST(gpcs_in_words)
{
	const struct topology *gpu = share_read(&list, "h200");
	static const char *const cases[][2] = {
		{"", ""}, {"0-65", "0-7"}, {"0-7", "0-7~"}, {"6", "0~"}, {"0,8,16,24,62-65", "1"}, {"66-255", ""},
		{"0,8,16,24,62-65,1,2,10,18,26,33,40,47,54", "1,2~,3"},
		{"0,8,16,24,62-65,2,10,18,26,33,40,47,54,3,4,5", "1,3,4-6~"},
	};
	char text[TPCSET_TEXT];

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct tpcset set = parse(cases[i][0]);
		struct gpcs gpcs = gpcs_of(gpu, &set);

		assert_string_equal(gpcs_format(&gpcs, text), cases[i][1]);
	}
}

RUN_TESTS(NULL, NULL)
