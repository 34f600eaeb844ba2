/* The estimate of when kernels ran: from events that are written here, on clocks that are made up. */
/* link: sim.a */
#include "../cases.h"
#include "../sim/costs.h"
#include "monitor/estimate/clock_fit.h"
#include "monitor/estimate/graph_times.h"
#include "monitor/estimate/times.h"

#define MS UINT64_C(1000000)
#define SECOND UINT64_C(1000000000)

/* --- durations -------------------------------------------------------------------------------------------------- */

static bool is_near(double value, double expected, double part)
{
	return value >= expected * (1 - part) && value <= expected * (1 + part);
}

TEST(durations)
{
	struct durations durations = {.count = 0}, others = {.count = 0};

	for (uint64_t i = 1; i <= 50; i++)
		durations_add(&durations, 1000 * i);
	for (uint64_t i = 51; i <= 101; i++)
		durations_add(&others, 1000 * i);
	durations_merge(&durations, &others);
	assert_each(durations.count, 101, durations.min_ns, 1000, durations.max_ns, 101000, durations.sum_ns, 5151000);
	assert_true(is_near(durations_average(&durations), 51000, 1e-9));
	assert_true(is_near(durations_deviation(&durations), 29300.17, 1e-6)); /* 1000 * sqrt(101 * 102 / 12) */
	assert_true(is_near((double)durations_median(&durations), 51000, 1.0 / 32));
}

/* Also of lengths that no kernel has. */
TEST(medians_of_all_sizes)
{
	for (unsigned int power = 0; power < 64; power++) {
		struct durations durations = {.count = 0};
		uint64_t low = (UINT64_C(1) << power) - (power > 0), high = UINT64_C(1) << power;

		durations_add(&durations, low);
		durations_add(&durations, high);
		durations_add(&durations, high);
		uint64_t median = durations_median(&durations);

		assert_true(median >= low && median <= high);
	}
	struct durations durations = {.count = 0};

	for (uint64_t ns = 1; ns < UINT64_C(1) << 39; ns += ns / 50 + 1) {
		memset(&durations, 0, sizeof durations);
		durations_add(&durations, 0);
		durations_add(&durations, ns);
		durations_add(&durations, UINT64_MAX);
		assert_true(is_near((double)durations_median(&durations), (double)ns, 1.0 / 32));
	}
}

/* --- clocks ----------------------------------------------------------------------------------------------------- */

#define AHEAD UINT64_C(1000000000000000)
#define LATER (100 * SECOND)

static double drift; /* of the GPU's clock */
static unsigned int seed_of_bounds = 19;

static uint64_t gpu_time(uint64_t cpu)
{
	return cpu + AHEAD + (uint64_t)(int64_t)(drift * (double)(cpu - LATER));
}

static bool knows(const struct clock_fit *fit, uint64_t cpu, uint64_t within)
{
	struct clock_offset offset;

	if (!clock_fit_offset(fit, cpu, &offset))
		return false;
	int64_t off = offset.offset - (int64_t)(gpu_time(cpu) - cpu);

	return offset.error_ns <= within && (uint64_t)(off < 0 ? -off : off) <= offset.error_ns;
}

TEST(clocks_are_bounded_from_both_sides)
{
	struct clock_fit fit = {.spans = {{0}}};
	struct clock_offset offset;

	assert_false(clock_fit_offset(&fit, LATER, &offset));
	clock_fit_add(&fit, CLOCK_NOT_BEFORE, LATER - 5000, gpu_time(LATER));
	assert_false(clock_fit_offset(&fit, LATER, &offset));
	clock_fit_add(&fit, CLOCK_NOT_AFTER, LATER + 1000, gpu_time(LATER));
	assert_true(knows(&fit, LATER, 3001));
	/* Better ones count, worse ones do not. */
	clock_fit_add(&fit, CLOCK_NOT_BEFORE, LATER - 1000, gpu_time(LATER));
	clock_fit_add(&fit, CLOCK_NOT_BEFORE, LATER - 9000, gpu_time(LATER));
	clock_fit_add(&fit, CLOCK_NOT_AFTER, LATER + 50000, gpu_time(LATER));
	assert_true(knows(&fit, LATER, 1001));
}

TEST(clocks_drift_apart)
{
	struct clock_fit fit = {.spans = {{0}}};
	uint64_t time = LATER;

	drift = 40e-6;
	clock_fit_add(&fit, CLOCK_NOT_BEFORE, time - 500, gpu_time(time));
	clock_fit_add(&fit, CLOCK_NOT_AFTER, time + 500, gpu_time(time));
	assert_true(knows(&fit, time, 501));
	assert_true(knows(&fit, time + SECOND, 200 * 1000));
	assert_false(knows(&fit, time + SECOND, 20 * 1000)); /* nobody knows how fast it is */
	for (; time < LATER + 5 * SECOND; time += SECOND / 10) {
		clock_fit_add(&fit, CLOCK_USUALLY_NOT_BEFORE, time - 500, gpu_time(time));
		clock_fit_add(&fit, CLOCK_NOT_AFTER, time + 500, gpu_time(time));
	}
	assert_true(knows(&fit, time, 1000));
	assert_true(knows(&fit, time + SECOND, 4000)); /* now it is known */
}

TEST(what_contradicts_is_not_believed)
{
	struct clock_fit fit = {.spans = {{0}}};

	clock_fit_add(&fit, CLOCK_NOT_BEFORE, LATER - 30000, gpu_time(LATER));
	/* It could be seen late. */
	clock_fit_add(&fit, CLOCK_USUALLY_NOT_BEFORE, LATER + 20000, gpu_time(LATER));
	clock_fit_add(&fit, CLOCK_NOT_AFTER, LATER + 1000, gpu_time(LATER));
	assert_true(knows(&fit, LATER, 16000));
	clock_fit_add(&fit, CLOCK_USUALLY_NOT_BEFORE, LATER - 500, gpu_time(LATER));
	clock_fit_add(&fit, CLOCK_USUALLY_NOT_BEFORE, LATER + 20000, gpu_time(LATER));
	assert_true(knows(&fit, LATER, 800));
}

/* Bounds that are true never lead to a wrong offset: not while the drift is hardly known, and not where few are close. */
TEST(true_bounds_never_mislead)
{
	for (unsigned int i = 0; i < 500; i++) {
		struct clock_fit fit = {.spans = {{0}}};
		unsigned int spans = 2 + (unsigned int)rand_r(&seed_of_bounds) % 40;
		uint64_t time = LATER;

		drift = (rand_r(&seed_of_bounds) % 180 - 90) * 1e-6;
		for (unsigned int j = 0; j < spans; j++) {
			time += CLOCK_FIT_SPAN_NS / 2 + (uint64_t)rand_r(&seed_of_bounds) % CLOCK_FIT_SPAN_NS;
			clock_fit_add(&fit, CLOCK_USUALLY_NOT_BEFORE, time - (uint64_t)rand_r(&seed_of_bounds) % 9000, gpu_time(time));
			clock_fit_add(&fit, CLOCK_NOT_BEFORE, time - (uint64_t)rand_r(&seed_of_bounds) % 20000, gpu_time(time));
			time += (uint64_t)rand_r(&seed_of_bounds) % (10 * MS);
			clock_fit_add(&fit, CLOCK_NOT_AFTER, time + (uint64_t)rand_r(&seed_of_bounds) % 9000, gpu_time(time));
		}
		assert_true(knows(&fit, time, UINT64_MAX));
		assert_true(knows(&fit, time + SECOND / 3, UINT64_MAX));
		assert_true(knows(&fit, LATER + SECOND / 4, UINT64_MAX));
	}
}

/* --- intervals -------------------------------------------------------------------------------------------------- */

static const struct times_calibration calibration = {
	.plain = {.latency_ns = 4000, .release_ns = 800, .next_ns = 1200},
	.graph = {.latency_ns = 4000, .release_ns = 800, .next_ns = 1200},
	.latency_least_ns = 2000,
};

static struct times times;
static struct replays replays;

FIXTURE(open_times)
{
	drift = 0;
	memset(&replays, 0, sizeof replays);
	times_open(&times, &calibration, LATER);
	clock_fit_add(&times.fit, CLOCK_NOT_BEFORE, LATER, gpu_time(LATER));
	clock_fit_add(&times.fit, CLOCK_NOT_AFTER, LATER, gpu_time(LATER));
}

FIXTURE(close_times)
{
	times_close(&times);
}

static void open_again(void)
{
	close_times(NULL);
	open_times(NULL);
}

/* In ns after LATER. */
static struct times_kernel kernel(uint64_t stream, uint64_t launched, uint64_t stamp, unsigned int tpcs)
{
	return (struct times_kernel){
		.stream = stream, .launched_ns = LATER + launched, .timestamp_ns = gpu_time(LATER + stamp), .tpcs = tpcs};
}

static uint64_t add(uint64_t stream, uint64_t launched, uint64_t stamp, unsigned int tpcs)
{
	struct times_kernel new = kernel(stream, launched, stamp, tpcs);
	uint64_t duration = 0;

	assert_true(times_add(&times, &new, &duration));
	return duration;
}

/* The latency, gaps between kernels, and a drift that is not known. */
#define EXACT 15000

static void assert_taken(uint64_t until, uint64_t span, uint64_t busy, uint64_t tpc_ns)
{
	struct times_taken taken;

	times_take(&times, LATER + until, &taken);
	assert_int_equal(taken.span_ns, span);
	assert_in_range(taken.busy_ns, busy > EXACT ? busy - EXACT : 0, busy + EXACT);
	assert_in_range(taken.tpc_ns, tpc_ns > 66 * EXACT ? tpc_ns - 66 * EXACT : 0, tpc_ns + 66 * EXACT);
}

/* The second one begins when the first has ended, though it was launched long before. */
TEST(one_after_the_other)
{
	assert_int_equal(add(1, 100000, 204800, 10), 100000);
	assert_int_equal(add(1, 101000, 306800, 10), 100000);
	assert_taken(MS, MS, 200000, 2000000);
	/* It also follows what was there before. */
	assert_int_equal(add(1, 102000, 308800, 10), 0);
	assert_int_equal(add(1, 103000, 408800, 10), 98000);
}

TEST(streams_side_by_side)
{
	assert_int_equal(add(1, 100000, 204800, 10), 100000);
	assert_int_equal(add(2, 150000, 254800, 20), 100000);
	assert_taken(MS, MS, 150000, 50000 * 10 + 100000 * 20);
}

/* A kernel is busy while it runs, and not again when it has ended. */
TEST(a_long_kernel)
{
	struct times_kernel running = kernel(1, 1 * MS, 0, 5);

	assert_true(times_add_running(&times, &running, LATER + 5 * MS));
	assert_taken(5 * MS, 5 * MS, 4 * MS, 20 * MS);
	assert_true(times_add_running(&times, &running, LATER + 10 * MS));
	assert_taken(10 * MS, 5 * MS, 5 * MS, 25 * MS);
	assert_in_range(add(1, 1 * MS, 12 * MS, 5), 10994000, 10996000);
	assert_taken(20 * MS, 10 * MS, 2 * MS, 10 * MS);
}

/* A kernel without any length is told; and whether the begin is guessed. */
TEST(every_kernel_is_told)
{
	add(1, 102000, 308800, 10);
	add(1, 103000, 308801, 10);
	assert_each(times.count, 2, times.intervals[0].is_behind, false, times.intervals[1].is_behind, true);
	assert_each(times.intervals[1].end - times.intervals[1].begin, 0, times.intervals[1].tpcs, 10);
	assert_int_equal(times.intervals[1].launched, LATER + 103000);
	assert_taken(MS, MS, 200000, 2000000);
}

TEST(what_is_lost_is_left_out)
{
	add(1, 7 * MS, 9 * MS, 1);
	times_lose(&times, LATER + 6 * MS);
	assert_taken(10 * MS, 4 * MS, 2 * MS, 2 * MS);
	/* Only once. */
	times_lose(&times, LATER + 8 * MS);
	assert_taken(12 * MS, 2 * MS, 0, 0);
}

TEST(without_comparison_nothing_is_known)
{
	struct times_kernel ended = kernel(1, 0, 1 * MS, 1), running = kernel(1, 1 * MS, 0, 1);
	struct times_taken taken;
	uint64_t duration;

	memset(&times.fit, 0, sizeof times.fit);
	times.has_offset = false;
	assert_false(times_add(&times, &ended, &duration));
	assert_true(times_add_running(&times, &running, LATER + 2 * MS));
	times_take(&times, LATER + 2 * MS, &taken);
	assert_each(taken.error_ns == UINT64_MAX, true, taken.busy_ns, MS - calibration.plain.latency_ns);
}

/* --- costs that are not those that estimates assume ------------------------------------------------------------------ */

/* Kernels on a GPU with the simulator's costs, which stand apart from src/: this many per cent of them. */
static void estimate_at(const char *percent, bool in_a_row, int64_t expected_error)
{
	enum { KERNELS = 100, NS = 10000, BETWEEN = 30000 };
	uint64_t end = 0;

	open_again();
	times.calibration = times_usual;
	setenv("SIM_COSTS", percent, 1);
	for (uint64_t i = 0; i < KERNELS; i++) {
		uint64_t launched = in_a_row ? 1000 + i : 1000 + i * BETWEEN;
		uint64_t begin = in_a_row && i > 0 ? end + cost_ns(COST_NEXT) : launched + cost_ns(COST_LAUNCH);

		end = begin + NS + cost_ns(COST_STAMP);
		int64_t error = (int64_t)add(1, launched, end, 1) - NS;

		ROW("costs of %s %%, kernel %d", percent, (int)i);
		/* The first in a row is one alone. */
		assert_true((in_a_row && i == 0) || (error >= expected_error - 20 && error <= expected_error + 20));
	}
	unsetenv("SIM_COSTS");
}

/* Off by the difference for each kernel, and never more. */
TEST(other_costs)
{
	estimate_at("100", false, 0);
	estimate_at("50", false, -(4600 + 760) / 2);
	estimate_at("200", false, 4600 + 760);
	estimate_at("100", true, 0);
	estimate_at("50", true, -(1060 + 760) / 2);
	estimate_at("200", true, 1060 + 760);
}

static bool is_converted(uint64_t at, uint64_t within)
{
	uint64_t time, near = at - 30 * MS;

	return times_convert(&times, gpu_time(at), near, &time) && time + within >= at && time <= at + within;
}

/* An offset that was asked for counts for what is near, with the drift, until something new is known. */
TEST(offsets_are_kept)
{
	uint64_t time = LATER;

	drift = 50e-6;
	memset(&times.fit, 0, sizeof times.fit);
	times.has_offset = false;
	clock_fit_add(&times.fit, CLOCK_NOT_BEFORE, time - 60000, gpu_time(time));
	clock_fit_add(&times.fit, CLOCK_NOT_AFTER, time + 1000, gpu_time(time));
	assert_false(is_converted(time, 20000));
	assert_false(is_converted(time, 20000)); /* this one is asked for where it is */
	for (; time < LATER + 2 * SECOND; time += CLOCK_FIT_SPAN_NS) {
		struct times_kernel ended = {.timestamp_ns = gpu_time(time)};

		assert_true(times_compare(&times, &ended, time - 400, time + 400));
		assert_false(times_compare(&times, &ended, time - 500, time + 500));
		assert_true(is_converted(time, 500));
	}
	assert_true(is_converted(time, 500));
	assert_true(is_converted(time + 60 * MS, 600));
}

/* A program that comes back to the driver after a pause takes longer to launch, up to a limit. */
TEST(a_pause_before_a_launch)
{
	const uint64_t at[] = {1, 2, 12, 512}, longer[] = {0, 300, 3000, 6000};
	struct times_taken taken;
	uint64_t duration;

	times.calibration.paused_ns_per_ms = 300;
	times.calibration.paused_most_ns = 6000;
	for (unsigned int i = 0; i < 4; i++) {
		struct times_kernel paused = kernel(1, at[i] * MS, at[i] * MS + 100000, 1);

		assert_true(times_add(&times, &paused, &duration));
		assert_int_equal(duration, 100000 - calibration.plain.release_ns - calibration.plain.latency_ns - longer[i]);
	}
	times_take(&times, LATER + SECOND, &taken);
}

/* Launched and seen by the processor, ended on the GPU. */
TEST(kernels_compare_clocks)
{
	struct times_kernel ended = kernel(1, 1 * MS, 1 * MS + 20000, 1);

	memset(&times.fit, 0, sizeof times.fit);
	times_compare(&times, &ended, 0, LATER + 1 * MS + 21000);
	assert_true(knows(&times.fit, LATER + 1 * MS, 12000));
	times_compare(&times, &ended, LATER + 1 * MS + 19000, LATER + 1 * MS + 21000);
	assert_true(knows(&times.fit, LATER + 1 * MS, 1100));
}

/* Two programs of one user on the same GPU. */
TEST(clocks_are_shared)
{
	static const struct pci_address pci = {.bus = 7}, elsewhere = {.bus = 8};
	struct shared_clock *shared = shared_clock_join(pci, 1000);
	struct times other;
	struct clock_offset offset;

	assert_ptr_equal(shared_clock_join(pci, 1000), shared);
	struct shared_clock *not_the_same[] = {shared_clock_join(pci, 1001), shared_clock_join(elsewhere, 1000)};

	assert_true(not_the_same[0] != shared && not_the_same[1] != shared);
	memset(&times.fit, 0, sizeof times.fit);
	times_share(&times, shared);
	times_open(&other, &calibration, LATER);
	times_share(&other, shared);
	/* The first one's end was seen soon. */
	struct times_kernel ended = kernel(1, 0, 5000, 1);

	times_compare(&other, &ended, 0, LATER + 30 * MS);
	assert_true(times_clock(&other, LATER, &offset));
	assert_true(offset.error_ns > 10 * MS);
	times_compare(&times, &ended, 0, LATER + 6000);
	assert_true(times_clock(&other, LATER, &offset));
	assert_true(offset.error_ns < 10000);
	assert_in_range(offset.offset - (int64_t)AHEAD + 10000, 0, 20000);
	/* One whose own bounds say something else keeps to them. */
	memset(&other.fit, 0, sizeof other.fit);
	clock_fit_add(&other.fit, CLOCK_NOT_BEFORE, LATER, gpu_time(LATER) + SECOND);
	clock_fit_add(&other.fit, CLOCK_NOT_AFTER, LATER, gpu_time(LATER) + SECOND - MS);
	assert_true(times_clock(&other, LATER, &offset));
	assert_in_range(offset.offset - (int64_t)AHEAD, SECOND - MS, SECOND);
	times_close(&other);
	times_share(&times, NULL);
	shared_clock_leave(shared);
	shared_clock_leave(shared);
	for (int i = 0; i < 2; i++)
		shared_clock_leave(not_the_same[i]);
	shared_clock_leave(NULL);
}

/* --- behind graphs ------------------------------------------------------------------------------------------------ */

#define NO_GRAPH INT64_MIN
#define NEVER_SEEN INT64_MAX

static struct times_graphs graph_until(int64_t end)
{
	uint64_t stamp = end == NEVER_SEEN ? TIMES_UNKNOWN : gpu_time(LATER + (uint64_t)end);

	return end == NO_GRAPH ? (struct times_graphs){0} : (struct times_graphs){LATER - 1000, stamp};
}

/* A kernel that is launched at 0 and ends after 500 us, behind a graph, and perhaps behind another. */
TEST(behind_graphs)
{
	static const struct {
		const char *what;
		int64_t before, perhaps_before; /* their ends */
		uint64_t duration, busy;
	} rows[] = {
		{"behind one", 400000, NO_GRAPH, 100000, 100000},
		/* Busy time has all that may have been; nothing is said of the kernel. */
		{"it ended later than the kernel: that is another launch of it", 500001, NO_GRAPH, TIMES_UNKNOWN, 500000},
		{"nobody has seen its end", NEVER_SEEN, NO_GRAPH, TIMES_UNKNOWN, 500000},
		{"its last node did not run: the stamp is that of a launch before", -100000, NO_GRAPH, TIMES_UNKNOWN, 500000},
		{"perhaps behind one", NO_GRAPH, 400000, TIMES_UNKNOWN, 500000},
		{"nor has anybody seen its end", NO_GRAPH, NEVER_SEEN, TIMES_UNKNOWN, 500000},
		{"it had ended when the kernel was launched", NO_GRAPH, 1000, 500000, 500000},
		{"it had ended when the one before ended", 400000, 300000, 100000, 100000},
		{"it had not", 300000, 400000, TIMES_UNKNOWN, 200000},
	};

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct times_kernel new = kernel(1, 0, 500000, 8);
		uint64_t duration = 0, expected = rows[i].duration, about = expected == TIMES_UNKNOWN ? 0 : EXACT;

		ROW("%s", rows[i].what);
		open_again();
		new.before = graph_until(rows[i].before);
		new.perhaps_before = graph_until(rows[i].perhaps_before);
		assert_true(times_add(&times, &new, &duration));
		assert_in_range(duration, expected - about, expected + about);
		assert_int_equal(times_know_duration(&times, duration), expected != TIMES_UNKNOWN);
		assert_taken(MS, MS, rows[i].busy, 8 * rows[i].busy);
	}
}

/* --- graphs ----------------------------------------------------------------------------------------------------- */

static void launch_at(uint64_t ns)
{
	assert_true(graph_times_replays_launch(&replays, LATER + ns));
}

static uint64_t see_end(uint64_t end, uint64_t length, bool none_is_left)
{
	return graph_times_replays_see_end(&replays, &times, &calibration.graph, LATER + end, length, none_is_left, 10);
}

TEST(one_replay)
{
	launch_at(MS);
	graph_times_replays_see_running(&replays, &times, &calibration.graph, LATER + 2 * MS, 10);
	assert_taken(2 * MS, 2 * MS, 1 * MS, 10 * MS);
	assert_int_equal(see_end(4 * MS, 3 * MS, true), 1);
	graph_times_replays_see_running(&replays, &times, &calibration.graph, LATER + 5 * MS, 10);
	assert_taken(5 * MS, 3 * MS, 2 * MS, 20 * MS);
}

/* Ten were launched at once, and only some ends are seen. */
TEST(replays_in_a_row)
{
	for (unsigned int i = 0; i < 10; i++)
		launch_at(i * 1000);
	assert_int_equal(see_end(3 * MS, MS, false), 3);
	assert_int_equal(see_end(7 * MS, 0, false), 4);
	graph_times_replays_see_running(&replays, &times, &calibration.graph, LATER + 8 * MS, 10);
	assert_taken(8 * MS, 8 * MS, 8 * MS, 80 * MS);
	assert_int_equal(see_end(10 * MS, 0, true), 3);
	graph_times_replays_see_running(&replays, &times, &calibration.graph, LATER + 20 * MS, 10);
	assert_taken(20 * MS, 12 * MS, 2 * MS, 20 * MS);
}

TEST(replays_of_unknown_length)
{
	launch_at(0);
	launch_at(1000);
	assert_int_equal(see_end(2 * MS, 0, true), 2);
	assert_taken(3 * MS, 3 * MS, 2 * MS, 20 * MS);
	/* An end that nothing was launched for. */
	assert_int_equal(see_end(4 * MS, MS, true), 0);
	assert_int_equal(see_end(4 * MS, MS, false), 0);
	assert_taken(5 * MS, 2 * MS, 0, 0);
}

TEST(more_replays_than_there_is_room_for)
{
	for (unsigned int i = 0; i < REPLAYS_WAITING; i++)
		launch_at(i);
	assert_false(graph_times_replays_launch(&replays, LATER));
	assert_int_equal(see_end(MS, 100, true), REPLAYS_WAITING);
	launch_at(2 * MS);
	assert_int_equal(see_end(3 * MS, MS, true), 1);
}

RUN_TESTS(open_times, close_times)
