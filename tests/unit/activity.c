/* What programs did between two looks: rates, and what is not known. */
#include "../cases.h"
#include "../../tools/nvtaskset/show/activity.c"
#include "../../tools/nvtaskset/show/demangle.c"
/* Several files have one. */
#define add add_process_to_list
#include "../../tools/nvtaskset/show/processes.c"
#undef add
#define add_process watch_process
#include "../../tools/nvtaskset/show/watched.c"
#undef add_process
#include "../../tools/nvtaskset/show/rows.c"
#include "../../tools/nvtaskset/terminal/text.c"

#include "has.h"
#include "own_segment.h"
#include "state/kernels/counts_read.h"

#include <malloc.h>

static const struct pci_address gpu = {.bus = 0x3b};

/* A process that has ended so many kernels on the GPU. */
static struct process process_with(uint64_t ended)
{
	struct process process = {.pid = 7, .started = 1000, .identity = {.pid = 7}};

	process.counts.count = 1;
	process.counts.gpus[0] = (struct counts_of_gpu){.pci = gpu, .launched = ended + 3, .ended = ended, .in_flight = 3};
	return process;
}

/* The activity of `now` a time after a look at `before`, or after none. */
static struct row row_after(const struct process *before, const struct process *now, struct reading span)
{
	static const struct topology_list none;
	struct activities earlier = {.gpus = &none}, nothing = {.count = 0};
	struct row row;
	struct error error;

	if (before)
		assert_int_equal(add_process(&earlier, before, &nothing, &error), 0);
	struct activities then = {.gpus = &none, .span = span};

	assert_int_equal(add_process(&then, now, &earlier, &error), 0);
	assert_int_equal(then.count, 1);
	if (!then.list)
		abort(); /* clang-tidy does not know that the assertion ends the test */
	row = then.list[0];
	free(earlier.list);
	free(then.list);
	return row;
}

/* Any of these numbers. */
static bool knows_any(const struct row *row, enum number from, enum number to)
{
	bool knows = false;

	for (enum number number = from; number <= to; number++)
		knows = knows || row->numbers[number].is_known;
	return knows;
}

TEST(what_is_not_counted_is_not_known)
{
	struct process before = process_with(100), now = process_with(150);

	now.counts.gpus[0].gaps = 1u << COUNTS_REFUSED;
	struct row activity = row_after(&before, &now, reading_of(2));

	assert_false(knows_any(&activity, NUMBER_RATE, NUMBER_RATE) || knows_any(&activity, NUMBER_IN_FLIGHT, NUMBER_IN_FLIGHT));
	assert_true(activity.numbers[NUMBER_IN_FLIGHT].value == 0);
	/* It was not known before. */
	struct process later = process_with(200);

	assert_false(row_after(&now, &later, reading_of(2)).numbers[NUMBER_RATE].is_known);
	now = process_with(150);
	now.not_in_force = "a reason";
	assert_false(row_after(&before, &now, reading_of(2)).numbers[NUMBER_IN_FLIGHT].is_known);
	/* Nobody measures times. */
	assert_false(knows_any(&activity, NUMBER_BUSY, NUMBER_MEASURED_TIME));
	assert_string_equal(activity.why_no_times, NOT_MEASURED);
}

/* The times of the process on its GPU, after these takes of a look. */
static struct row times_after(const struct monitor_gpu *takes, size_t count)
{
	static const struct topology topology = {.pci = {.bus = 0x3b}, .tpc_count = 66};
	struct process process = process_with(0);
	static struct watched watched; /* the reason that is returned is in it */
	struct watch_list list = {.count = 1, .list = &watched};
	struct row activity = row_after(NULL, &process, reading_of(1));

	watched = (struct watched){.pid = 7, .started = 1000, .look = (struct monitor *)&watched, .why = "a reason"};
	for (size_t i = 0; i < count; i++) {
		add_gpu(&watched, &takes[i]);
		watched.was_taken = true;
	}
	activity.topology = &topology;
	add_times(&activity, &list);
	activity.process = NULL;
	return activity;
}

static struct monitor_gpu take_of(uint64_t span, uint64_t busy, uint64_t tpcs)
{
	return (struct monitor_gpu){.pci = gpu, .is_time_known = true, .span_ns = span, .busy_ns = busy, .tpc_ns = busy * tpcs};
}

static void assert_near(struct reading reading, double value)
{
	assert_true(reading.is_known);
	assert_true(reading.value > value - 1e-9 && reading.value < value + 1e-9);
}

TEST(times)
{
	struct monitor_gpu takes[] = {take_of(50000000, 25000000, 33), take_of(50000000, 50000000, 66)};
	struct row activity = times_after(takes, 2);

	assert_near(activity.numbers[NUMBER_BUSY], 0.75);
	assert_near(activity.numbers[NUMBER_TPC_SHARE], (0.25 * 33 + 0.5 * 66) / 66);
	assert_near(activity.numbers[NUMBER_BUSY_TIME], 0.075);
	assert_near(activity.numbers[NUMBER_TPC_TIME], 0.025 * 33 + 0.05 * 66);
	assert_null(activity.why_no_times);
}

static void assert_no_times(struct row activity, const char *why)
{
	assert_false(knows_any(&activity, NUMBER_BUSY, NUMBER_MEASURED_TIME));
	assert_string_equal(activity.why_no_times, why);
}

/* They are left out, unless hardly anything is left. */
TEST(takes_in_which_the_clocks_are_not_known)
{
	const struct monitor_gpu known = take_of(100000000, 50000000, 33);
	struct monitor_gpu takes[] = {take_of(300000000, 300000000, 33), known, known};

	takes[0].is_time_known = false;
	takes[0].gaps = 1u << MONITOR_CLOCKS;
	takes[1].busy_error_ns = takes[2].busy_error_ns = 1000000;
	struct row activity = times_after(takes, 3);

	assert_near(activity.numbers[NUMBER_BUSY], 0.5);
	assert_near(activity.numbers[NUMBER_BUSY_ERROR], 0.01);
	assert_near(activity.numbers[NUMBER_MEASURED_TIME], 0.2);
	assert_no_times(times_after(takes, 1), monitor_gap_text(MONITOR_CLOCKS));
	assert_false(times_after(takes, 1).numbers[NUMBER_BUSY_ERROR].is_known);
	takes[0].span_ns = 2000000000;
	assert_no_times(times_after(takes, 3), monitor_gap_text(MONITOR_CLOCKS));
	/* Other reasons still spoil the whole. */
	takes[0].gaps |= 1u << MONITOR_PROFILER;
	assert_no_times(times_after(takes, 3), monitor_gap_text(MONITOR_PROFILER));
}

TEST(an_interval_begins_anew_and_the_sum_goes_on)
{
	struct monitor_gpu take = take_of(50000000, 25000000, 33), lost = take;
	struct watched watched = {.pid = 7};
	struct watch_list list = {.count = 1, .list = &watched};

	lost.is_time_known = false;
	add_gpu(&watched, &take);
	add_gpu(&watched, &lost);
	assert_non_null(watched.gpus[0].why_unknown);
	watched_begin_interval(&list);
	assert_null(watched.gpus[0].why_unknown);
	add_gpu(&watched, &take);
	assert_each(watched.gpus[0].busy_ns, 25000000, watched.gpus[0].all_busy_ns, 50000000, watched.gpu_count, 1);
}

TEST(kernels)
{
	struct watched watched = {.pid = 7};
	struct monitor_function came[] = {{.name = "_Z4gemmPfi", .instances = 10}, {.name = NULL, .instances = 1}};
	struct kernel_activity kernels[2];

	durations_add(&came[0].durations, 1000);
	function_sums_add(&watched.functions, &(const struct monitor_times){.function_count = 1, .functions = came});
	came[0] = (struct monitor_function){.name = "_Z4gemmPfi", .instances = 30, .overruns = 2};
	durations_add(&came[0].durations, 3000);
	function_sums_add(&watched.functions, &(const struct monitor_times){.function_count = 2, .functions = came});
	assert_int_equal(watched.functions.count, 2);
	for (size_t i = 0; i < 2; i++)
		assert_true(describe_kernel(&kernels[i], &watched.functions.list[i].all, i == 0));
	share_out(kernels, 2);
	/* Without the C++ library, the name is as the compiler wrote it. */
	assert_string_equal(kernels[0].name, find_demangler() ? "gemm(float*, int)" : "_Z4gemmPfi");
	assert_near(kernels[0].numbers[KERNEL_INSTANCES], 40);
	assert_near(kernels[0].numbers[KERNEL_AVERAGE], 2000);
	assert_near(kernels[0].numbers[KERNEL_TOTAL], 80000);
	assert_near(kernels[0].numbers[KERNEL_SHARE], 1);
	assert_near(kernels[0].numbers[KERNEL_OVERRUNS], 2);
	/* It has no sample: nothing is known of its times. */
	assert_false(kernels[1].numbers[KERNEL_TOTAL].is_known || kernels[1].numbers[KERNEL_AVERAGE].is_known);
	assert_false(kernels[1].numbers[KERNEL_SHARE].is_known);
	free(kernels[0].name);
	free(kernels[1].name);
	end_one(&watched);
}

static struct times_interval kernel_of(uint64_t launched, uint64_t ended, bool is_borrowed)
{
	return (struct times_interval){
		.kind = TIMES_KERNEL, .launched = launched, .end = ended, .is_borrowed = is_borrowed};
}

static struct pci_address gpu_of_launches;

static struct monitor_gpu launches_of(struct times_interval *kernel)
{
	return (struct monitor_gpu){.pci = gpu_of_launches, .interval_count = 1, .intervals = kernel};
}

/* The longest wait of a lender that launches then. */
static double wait_of(struct watched *borrower, struct times_interval launch)
{
	struct watched both[] = {*borrower, {.pid = 8, .lends = true}};
	struct watch_list list = {.count = 2, .list = both};

	const struct monitor_gpu take = launches_of(&launch);

	add_launches(&both[1], &take);
	settle(&list, &both[1]);
	/* What borrowers say of it may come later. */
	assert_each(both[1].launch_count, 1, both[1].due_count, 1, both[1].gpu_count, 0);
	settle(&list, &both[1]);
	assert_each(both[1].launch_count, 0, both[1].gpu_count, 1);
	free(both[1].launches);
	return both[1].gpus[0].waited_ns;
}

static void lend(struct loans *loans, struct times_interval kernel)
{
	struct monitor_times times = {.gpu_count = 1};

	times.gpus[0] = launches_of(&kernel);
	loans_add(loans, &times);
}

TEST(a_lender_waits_for_launches_that_were_there_before)
{
	static struct loans loans;
	struct watched borrower = {.pid = 7, .borrows = true, .loans = &loans};

	gpu_of_launches = gpu;
	lend(&loans, kernel_of(100, 500, true));
	lend(&loans, kernel_of(200, 900, true));
	lend(&loans, kernel_of(250, 5000, false));
	assert_true(wait_of(&borrower, kernel_of(50, 60, false)) == 0);
	assert_true(wait_of(&borrower, kernel_of(300, 1000, false)) == 600);
	assert_true(wait_of(&borrower, kernel_of(901, 999, false)) == 0);
	gpu_of_launches.bus++;
	assert_true(wait_of(&borrower, kernel_of(300, 1000, false)) == 0);
	gpu_of_launches = gpu;
	/* Of more than are kept, the last ones count. */
	for (uint64_t i = 0; i < LOANS_MAX; i++)
		lend(&loans, kernel_of(10000 + i, 20000 + i, true));
	assert_true(wait_of(&borrower, kernel_of(300, 1000, false)) == 0);
	assert_true(wait_of(&borrower, kernel_of(10500, 1000, false)) == 20499 - 10500);
}

static void look_often(struct activities *activities, int looks)
{
	static const struct topology_list none;
	struct error error;

	for (int i = 0; i < looks; i++)
		assert_done(activities_look(activities, &none, &error));
}

/* As for each page of top. */
TEST_WITH(make_owner, close_owner, looks_leave_nothing)
{
	struct activities activities = {.measures_times = true};

	look_often(&activities, 10);
	assert_true(activities.count > 0);
	size_t used = mallinfo2().uordblks;
	int descriptors = count_descriptors();

	look_often(&activities, 500);
	if (!SANITIZED) /* a sanitizer keeps freed memory, and looks for leaks */
		assert_in_range(mallinfo2().uordblks, 1, used + 4096);
	assert_int_equal(count_descriptors(), descriptors);
	activities_free(&activities);
}

/* A hostile program names its functions so: each argument is a pair of the one before, and the text longer than any memory. */
TEST(a_name_that_has_no_end)
{
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	char name[512], *end = stpcpy(name, "_Z1fSt4pairIiiES_IS0_S0_E");

	for (unsigned int i = 1; digits[i] != '\0'; i++)
		end += sprintf(end, "S_IS%c_S%c_E", digits[i], digits[i]);
	char *shown = demangle(name);

	assert_string_equal(shown, name);
	free(shown);
	/* It is not tried again. */
	shown = demangle("_Z4gemmPfi");
	assert_string_equal(shown, "_Z4gemmPfi");
	free(shown);
}

RUN_TESTS(NULL, NULL)
