/* The rules of a priority, on a simulated GPU (shared_gpu.h); and the bound of all rules. */
#include "shared_gpu.h"

#include "shim/bound.h"

#define HIGH 80
#define LOW 20

static struct program *const high = &programs[0], *const low = &programs[1];

static void start_both(bool (*high_wants)(uint64_t time))
{
	begin();
	start(0, HIGH, 100, high_wants);
	start(1, LOW, 100, always);
	go_on(20 * MS);
	forget_what_they_got();
}

static bool never(uint64_t time)
{
	(void)time;
	return false;
}

/* --- time slices ------------------------------------------------------------------------------------------------------ */

/* As long as a higher one is there, whatever it does; and no longer. */
static void test_short_slices(void **state)
{
	(void)state;
	start_both(never);
	assert_int_equal(low->slice_us, PRIORITY_SLICE_US);
	assert_int_equal(high->slice_us, 0);
	go_on(1 * SECOND);
	assert_int_equal(low->slice_us, PRIORITY_SLICE_US);
	assert_got(low, 1 * SECOND, 1000, 1000);
	high->is_gone = true;
	go_on(2 * MS);
	assert_int_equal(low->slice_us, 0);
}

static void test_alone(void **state)
{
	(void)state;
	begin();
	start(1, LOW, 100, always);
	go_on(1 * SECOND);
	assert_int_equal(low->slice_us, 0);
	assert_int_equal(low->asides, 0);
}

/* Two of no higher priority under one that is at rest: they would lose most of the time by short slices. */
static void have_a_rival(uint32_t rank)
{
	start_both(never);
	struct program *rival = start(2, rank, 100, always);

	go_on(1 * SECOND);
	assert_int_equal(low->slice_us, PRIORITY_SLICE_SHARED_US);
	rival->is_gone = true;
	go_on(1 * SECOND + 20 * MS);
	assert_int_equal(low->slice_us, PRIORITY_SLICE_US);
}

static void test_slices_of_rivals(void **state)
{
	(void)state;
	have_a_rival(LOW);
	have_a_rival(LOW - 1);
}

/* A short kernel now and then needs no more than that. */
static bool now_and_then(uint64_t time)
{
	return time % (2 * MS) < 10 * US;
}

static void test_short_kernels_put_nobody_aside(void **state)
{
	(void)state;
	start_both(now_and_then);
	go_on(10 * SECOND);
	assert_int_equal(low->asides, 0);
}

/* As a model's decoding, step after step, with little between them: that is the lower one's, and it has it. It has learnt soon
 * that it would wait in vain. */
static bool decoding(uint64_t time)
{
	return time % (2200 * US) < 1800 * US;
}

static void test_gaps_are_the_lower_ones(void **state)
{
	(void)state;
	start_both(decoding);
	go_on(2 * SECOND);
	forget_what_they_got();
	go_on(10 * SECOND);
	assert_got(low, 10 * SECOND, 180, 220);
	assert_true(low->asides < 10);
}

/* And forgets it, if the other one leaves nothing any more. */
static bool decoding_first(uint64_t time)
{
	return time < 6 * SECOND ? decoding(time) : always(time);
}

static void test_patience_comes_back(void **state)
{
	(void)state;
	start_both(decoding_first);
	go_on(2 * SECOND);
	forget_what_they_got();
	go_on(1 * SECOND);
	assert_got(low, 1 * SECOND, 10, 30);
}

/* --- putting aside ---------------------------------------------------------------------------------------------------- */

static bool bursts(uint64_t time)
{
	return time % (200 * MS) < 50 * MS;
}

/* Busy for 50 of every 200 ms: it has these; and the lower one all others, at once. */
static void test_higher_one_pauses(void **state)
{
	(void)state;
	start_both(bursts);
	now = 6 * SECOND;
	go_on(10 * SECOND);
	assert_got(high, 10 * SECOND / 4, 975, 1000);
	assert_got(low, 10 * SECOND, 730, 770);
	assert_in_range(low->asides, 45, 55);
	go_on(40 * MS);
	assert_true(low->is_stopped);
	go_on(10 * MS + 6 * MS);
	assert_false(low->is_stopped);
}

/* Kernels of 0.6 ms, each of which is waited for: the gaps between them are no pauses. */
static bool bursts_of_kernels(uint64_t time)
{
	return bursts(time) && time % (200 * MS) % (600 * US) < 580 * US;
}

/* It has learnt that the higher one leaves nothing, and is aside soon. */
static void test_gaps_are_no_pauses(void **state)
{
	unsigned int returns = 0;

	(void)state;
	start_both(bursts_of_kernels);
	now = 6 * SECOND;
	go_on(2 * SECOND);
	for (unsigned int i = 0; i < 50; i++) {
		go_on(6 * MS);
		forget_what_they_got();
		go_on(43 * MS);
		/* But for looks that saw two gaps, one after the other. */
		returns += !low->is_stopped || low->asides > 0;
		go_on(151 * MS);
	}
	assert_in_range(returns, 0, 10);
}

/* Pictures, which are ready soon: nobody is put aside for the rest of one. */
static bool pictures(uint64_t time)
{
	return time % (16 * MS) < 7 * MS;
}

static bool a_burst_and_then_pictures(uint64_t time)
{
	return time < 7 * SECOND ? bursts(time) : pictures(time);
}

static void test_short_bursts(void **state)
{
	(void)state;
	start_both(a_burst_and_then_pictures);
	now = 6 * SECOND;
	go_on(2 * SECOND);
	forget_what_they_got();
	go_on(10 * SECOND);
	assert_in_range(low->asides, 0, 5);
}

/* Nobody waits for ever. */
static void test_lower_one_keeps_a_hundredth(void **state)
{
	(void)state;
	start_both(always);
	go_on(10 * SECOND);
	assert_got(low, 10 * SECOND, 10, 30);
	assert_got(high, 10 * SECOND, 970, 990);
	assert_in_range(low->asides, 97, 103);
}

/* The GPU lets the time slices of all higher ones end first. */
static void test_many_higher_ones(void **state)
{
	(void)state;
	begin();
	for (unsigned int i = 0; i + 1 < PROGRAMS; i++)
		start(i, HIGH, 100, always);
	struct program *last = start(PROGRAMS - 1, LOW, 100, always);

	go_on(1 * SECOND);
	forget_what_they_got();
	go_on(10 * SECOND);
	assert_got(last, 10 * SECOND, 10, 30);
}

/* And none of several lower ones, whose turns come at the same time. */
static void test_many_lower_ones(void **state)
{
	(void)state;
	for (unsigned int count = 2; count < PROGRAMS; count++) {
		begin();
		start(0, HIGH, 100, always);
		for (unsigned int i = 1; i <= count; i++)
			start(i, LOW, 100, always);
		go_on(2 * SECOND);
		forget_what_they_got();
		go_on(10 * SECOND);
		for (unsigned int i = 1; i <= count; i++)
			assert_got(&programs[i], 10 * SECOND, 5, 30);
	}
}

/* A lower one with short kernels now and then is not put aside, and back, for each. */
static void test_lower_one_with_short_kernels(void **state)
{
	(void)state;
	begin();
	start(0, HIGH, 100, always);
	start(1, LOW, 100, always);
	low->piece = 50 * US;
	low->pause = 2 * MS;
	go_on(1 * SECOND);
	forget_what_they_got();
	go_on(10 * SECOND);
	assert_in_range(low->asides, 0, 200);
}

/* Somebody holds the higher one aside: it takes no time, so nobody gives way to it. */
static void test_higher_one_is_aside(void **state)
{
	(void)state;
	start_both(always);
	high->is_held = true;
	go_on(10 * MS);
	forget_what_they_got();
	go_on(1 * SECOND);
	assert_got(low, 1 * SECOND, 1000, 1000);
}

static void test_idle_ones_are_not_put_aside(void **state)
{
	(void)state;
	begin();
	start(0, HIGH, 100, always);
	start(1, LOW, 100, never);
	go_on(1 * SECOND);
	assert_int_equal(low->asides, 0);
}

/* --- one that does not react ------------------------------------------------------------------------------------------- */

/* What it said last holds for 10 ms. */
static void test_higher_one_is_stopped(void **state)
{
	(void)state;
	start_both(always);
	while (!low->is_stopped)
		go_on(STEP);
	high->is_frozen = true;
	go_on(FRESH + 2 * MS);
	assert_false(low->is_stopped);
	high->is_frozen = false;
	go_on(15 * MS);
	assert_true(low->is_stopped);
}

/* It costs the higher one no more than its short slices, of which it has one for each of the other's. */
static void test_lower_one_is_stopped(void **state)
{
	(void)state;
	start_both(bursts);
	now = 6 * SECOND;
	low->is_frozen = true;
	go_on(10 * SECOND);
	assert_int_equal(low->asides, 0);
	assert_got(high, 10 * SECOND / 4, 950, 1000);
}

/* --- several priorities -------------------------------------------------------------------------------------------------- */

static void test_three(void **state)
{
	(void)state;
	begin();
	start(0, 2, 100, bursts);
	start(1, 1, 100, always);
	start(2, 0, 100, always);
	go_on(10 * SECOND);
	assert_got(&programs[0], 10 * SECOND / 4, 930, 1000);
	assert_got(&programs[1], 10 * SECOND, 700, 760);
	assert_got(&programs[2], 10 * SECOND, 10, 40);
}

/* --- turns, beside other rules -------------------------------------------------------------------------------------------- */

static const struct neighbours busy = {
	.any = true,
	.has_higher = true,
	.higher_speaks = true,
	.higher_wants = true,
	.least_served_ns = UINT64_MAX,
};

/* Its turn begins when it is back, whoever kept it aside until then. */
static void test_turn_is_kept(void **state)
{
	struct priority priority;
	const uint64_t turn = SECOND + PRIORITY_PERIOD_NS - PRIORITY_TURN_NS, back = turn + 50 * MS;

	(void)state;
	priority_begin(&priority);
	assert_true(priority_step(&priority, SECOND, true, &busy).is_aside);
	assert_int_equal(priority_step(&priority, SECOND, true, &busy).slice_us, PRIORITY_SLICE_US);
	priority_was_put_aside(&priority, SECOND, SECOND);
	assert_int_equal(priority_step(&priority, SECOND, true, &busy).slice_us, 0);
	assert_true(priority_step(&priority, turn - 1, true, &busy).is_aside);
	assert_int_equal(priority_step(&priority, turn - 1, true, &busy).until, turn);
	assert_false(priority_step(&priority, turn, true, &busy).is_aside);
	assert_false(priority_step(&priority, back, true, &busy).is_aside);
	priority_was_taken_back(&priority, back);
	assert_false(priority_step(&priority, back + PRIORITY_TURN_NS - 1, true, &busy).is_aside);
	assert_int_equal(priority_step(&priority, back + 1, true, &busy).slice_us, 0);
	assert_true(priority_step(&priority, back + PRIORITY_TURN_NS, true, &busy).is_aside);
}

/* A sixth is left, which is seen only after some time: nevertheless, the next wait begins later. */
static void test_wait_in_vain(void **state)
{
	struct priority priority;
	struct neighbours seen = busy;
	uint64_t time = SECOND;

	(void)state;
	priority_begin(&priority);
	assert_true(priority_step(&priority, time, true, &seen).is_aside);
	priority_was_put_aside(&priority, time, time);
	do {
		time += MS;
		seen.higher_wants = time / MS % 6 > 0;
	} while (priority_step(&priority, time, true, &seen).is_aside && time < SECOND + PRIORITY_PERIOD_NS / 2);
	assert_true(time > SECOND + PRIORITY_WORTH_NS);
	assert_false(priority.is_waiting);
	priority_was_taken_back(&priority, time);
	seen.higher_wants = true;
	seen.higher_since = time;
	assert_false(priority_step(&priority, time + 2 * PRIORITY_PATIENCE_NS, true, &seen).is_aside);
	assert_true(priority_step(&priority, time + 2 * PRIORITY_PATIENCE_NS + 1, true, &seen).is_aside);
}

/* Nonsense on the board: at worst, it waits as for one that has been busy for long. */
static void test_future(void **state)
{
	struct priority priority;
	struct neighbours odd = busy;

	(void)state;
	priority_begin(&priority);
	odd.higher_since = UINT64_MAX;
	assert_false(priority_step(&priority, SECOND, true, &odd).is_aside);
	odd.higher_since = SECOND + MS;
	assert_false(priority_step(&priority, SECOND, true, &odd).is_aside);
}

/* --- the bound ------------------------------------------------------------------------------------------------------------- */

static void test_bound(void **state)
{
	struct bound bound = {.struck = 0};
	uint64_t wake, end = SECOND + BOUND_ASIDE_NS;

	(void)state;
	assert_true(bound_step(&bound, SECOND, true, 2, &wake));
	bound_was_put_aside(&bound, SECOND);
	assert_true(bound_step(&bound, SECOND + 1, true, 2, &wake));
	assert_int_equal(wake, end);
	assert_true(bound_step(&bound, end - 1, true, 2, &wake));
	assert_int_equal(bound.struck, 0);
	assert_false(bound_step(&bound, end, true, 2, &wake));
	assert_int_equal(bound.struck, 1);
	bound_was_taken_back(&bound, end + MS);
	assert_false(bound_step(&bound, end + MS, true, 2, &wake));
	assert_int_equal(wake, end + MS + BOUND_BACK_NS);
	assert_false(bound_step(&bound, wake - 1, true, 0, &wake));
	assert_true(bound_step(&bound, wake, true, 2, &wake));
	assert_int_equal(bound.struck, 1);
}

static void test_bound_needs_two_gpus(void **state)
{
	struct bound bound = {.struck = 0};
	uint64_t wake;

	(void)state;
	bound_was_put_aside(&bound, SECOND);
	assert_true(bound_step(&bound, 2 * SECOND, true, 1, &wake));
	assert_int_equal(wake, UINT64_MAX);
	assert_false(bound_step(&bound, 2 * SECOND, true, 2, &wake));
	assert_int_equal(bound.struck, 1);
	/* The rule has ended by itself: that is no strike. */
	bound = (struct bound){.struck = 0};
	bound_was_put_aside(&bound, SECOND);
	assert_false(bound_step(&bound, 2 * SECOND, false, 2, &wake));
	assert_int_equal(bound.struck, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_short_slices),
		cmocka_unit_test(test_alone),
		cmocka_unit_test(test_slices_of_rivals),
		cmocka_unit_test(test_short_kernels_put_nobody_aside),
		cmocka_unit_test(test_gaps_are_the_lower_ones),
		cmocka_unit_test(test_patience_comes_back),
		cmocka_unit_test(test_higher_one_pauses),
		cmocka_unit_test(test_gaps_are_no_pauses),
		cmocka_unit_test(test_short_bursts),
		cmocka_unit_test(test_lower_one_keeps_a_hundredth),
		cmocka_unit_test(test_many_higher_ones),
		cmocka_unit_test(test_many_lower_ones),
		cmocka_unit_test(test_lower_one_with_short_kernels),
		cmocka_unit_test(test_higher_one_is_aside),
		cmocka_unit_test(test_idle_ones_are_not_put_aside),
		cmocka_unit_test(test_higher_one_is_stopped),
		cmocka_unit_test(test_lower_one_is_stopped),
		cmocka_unit_test(test_three),
		cmocka_unit_test(test_turn_is_kept),
		cmocka_unit_test(test_wait_in_vain),
		cmocka_unit_test(test_future),
		cmocka_unit_test(test_bound),
		cmocka_unit_test(test_bound_needs_two_gpus),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
