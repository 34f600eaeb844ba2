/* The rules of a weight: shares of a simulated GPU (shared_gpu.h). */
#include "shared_gpu.h"

#define EQUAL 50 /* the priority of all */

/* Some hundreds of puttings aside, in each of which a time slice more or less is chance. */
#define LONG (60 * SECOND)

static uint64_t all_got(void)
{
	uint64_t all = 0;

	for (unsigned int i = 0; i < PROGRAMS; i++)
		all += programs[i].got_ns;
	return all;
}

/* Of what all got, each has its share within a twentieth of that. */
static void assert_shares(const uint32_t *weights, unsigned int count)
{
	uint64_t weights_of_all = 0;

	for (unsigned int i = 0; i < count; i++)
		weights_of_all += weights[i];
	for (unsigned int i = 0; i < count; i++) {
		double got = (double)programs[i].got_ns / (double)all_got(), share = (double)weights[i] / (double)weights_of_all;

		if (got < 0.95 * share || got > 1.05 * share)
			fail_msg("program %u got %.4f instead of %.4f", i, got, share);
	}
}

/* In company, so many thousandths of the time are lost; by itself, a program gets all that there is. */
static void check_shares_of_rest(unsigned int lost, const uint32_t *weights, unsigned int count)
{
	begin();
	loss = lost;
	for (unsigned int i = 0; i < count; i++)
		start(i, EQUAL, weights[i], always);
	go_on(LONG);
	assert_shares(weights, count);
}

static void check_shares(const uint32_t *weights, unsigned int count)
{
	check_shares_of_rest(0, weights, count);
}

static void test_shares(void **state)
{
	(void)state;
	check_shares((const uint32_t[]){100, 200, 400}, 3);
	check_shares((const uint32_t[]){1, 2, 4}, 3);
	check_shares((const uint32_t[]){100, 2000}, 2);
	check_shares((const uint32_t[]){300, 100}, 2);
	check_shares((const uint32_t[]){10000, 9000, 8000, 7000}, 4);
}

/* As much as between kernels of 0.5 ms on an H100 (docs/hardware.md, "Time slices"). */
static void test_shares_where_changes_cost(void **state)
{
	const unsigned int lost = 91;

	(void)state;
	check_shares_of_rest(lost, (const uint32_t[]){100, 200, 400}, 3);
	check_shares_of_rest(lost, (const uint32_t[]){100, 2000}, 2);
	check_shares_of_rest(lost, (const uint32_t[]){300, 100}, 2);
}

/* Those that are equal are left alone: the GPU does it by itself. */
static void test_equals(void **state)
{
	(void)state;
	check_shares((const uint32_t[]){100, 100}, 2);
	assert_true(programs[0].asides + programs[1].asides < 100);
}

static void test_alone(void **state)
{
	(void)state;
	check_shares((const uint32_t[]){7}, 1);
	assert_int_equal(programs[0].asides, 0);
}

/* --- programs that do not always want to run -------------------------------------------------------------------------- */

static bool late_riser(uint64_t time)
{
	return time % SECOND >= SECOND / 2;
}

/* What it did not use for half a second it does not have afterwards: from the first moment on, it has its half. */
static void test_saves_nothing(void **state)
{
	(void)state;
	begin();
	start(0, EQUAL, 100, always);
	start(1, EQUAL, 100, late_riser);
	for (unsigned int second = 0; second < 5; second++) {
		go_on(500 * MS);
		forget_what_they_got();
		go_on(100 * MS);
		assert_got(&programs[0], 100 * MS, 440, 560);
		go_on(400 * MS);
	}
}

/* As programs that wait for the end of each piece of work, before they have more. */
static void test_shares_with_moments_without_work(void **state)
{
	const uint32_t weights[] = {300, 100};

	(void)state;
	for (uint64_t pause = 50 * US; pause <= 300 * US; pause += 50 * US) {
		begin();
		for (unsigned int i = 0; i < 2; i++) {
			struct program *program = start(i, EQUAL, weights[i], always);

			program->piece = 2 * MS;
			program->pause = pause;
		}
		go_on(10 * SECOND);
		assert_shares(weights, 2);
	}
}

/* It is seen in few looks: nobody waits for it longer than until the next one. */
static void test_pauses_make_nobody_wait(void **state)
{
	(void)state;
	begin();
	start(0, EQUAL, 100, always);
	struct program *pauser = start(1, EQUAL, 2000, always);

	pauser->piece = 2 * MS;
	pauser->pause = 18 * MS;
	go_on(10 * SECOND);
	assert_got(&programs[0], 10 * SECOND, 820, 900);
	assert_got(pauser, 10 * SECOND, 90, 100);
}

/* For 2 of every 9 ms: pauses that are shorter than any that a rule could see as one. */
static bool short_pauser(uint64_t time)
{
	return now < 15 * SECOND ? time % (9 * MS) < 2 * MS : true;
}

static void test_saves_nothing_in_short_pauses(void **state)
{
	(void)state;
	begin();
	start(0, EQUAL, 100, always);
	start(1, EQUAL, 100, short_pauser);
	go_on(10 * SECOND);
	forget_what_they_got();
	go_on(100 * MS);
	assert_got(&programs[0], 100 * MS, 400, 600);
}

/* A kernel of 10 us every 2 ms: a neighbour loses next to nothing to the greatest weight. */
static bool now_and_then(uint64_t time)
{
	return time % (2 * MS) < 10 * US;
}

static void test_short_kernels_cost_little(void **state)
{
	(void)state;
	begin();
	start(0, EQUAL, 100, always);
	start(1, EQUAL, 10000, now_and_then);
	go_on(10 * SECOND);
	assert_got(&programs[0], 10 * SECOND, 985, 1000);
}

/* --- those that come and go ------------------------------------------------------------------------------------------- */

static void test_comes_later(void **state)
{
	(void)state;
	begin();
	start(0, EQUAL, 100, always);
	go_on(10 * SECOND);
	assert_got(&programs[0], 10 * SECOND, 1000, 1000);
	start(1, EQUAL, 100, always);
	forget_what_they_got();
	go_on(40 * MS);
	assert_got(&programs[0], 40 * MS, 400, 600);
	assert_got(&programs[1], 40 * MS, 400, 600);
	go_on(10 * SECOND);
	start(2, EQUAL, 100, always);
	forget_what_they_got();
	go_on(60 * MS);
	assert_got(&programs[2], 60 * MS, 240, 420);
}

static bool wants_later(uint64_t time)
{
	return time < 6 * SECOND || time >= 12 * SECOND;
}

/* It has had much, and nobody was there who could see that. */
static void test_comes_while_others_pause(void **state)
{
	(void)state;
	begin();
	start(0, EQUAL, 100, wants_later);
	go_on(2 * SECOND);
	start(1, EQUAL, 100, always);
	go_on(5 * SECOND);
	forget_what_they_got();
	go_on(100 * MS);
	assert_got(&programs[0], 100 * MS, 400, 600);
}

static void test_goes(void **state)
{
	(void)state;
	begin();
	start(0, EQUAL, 10, always);
	start(1, EQUAL, 1000, always);
	go_on(1 * SECOND);
	programs[1].is_gone = true;
	go_on(2 * MS);
	forget_what_they_got();
	go_on(100 * MS);
	assert_got(&programs[0], 100 * MS, 1000, 1000);
}

/* Its last word holds for 10 ms. */
static void test_is_stopped(void **state)
{
	(void)state;
	begin();
	start(0, EQUAL, 10, always);
	start(1, EQUAL, 1000, always);
	go_on(1 * SECOND);
	while (!programs[0].is_stopped || programs[1].is_aside)
		go_on(STEP);
	programs[1].is_frozen = true;
	go_on(FRESH + 2 * MS);
	assert_false(programs[0].is_stopped);
	go_on(1 * SECOND);
	assert_false(programs[0].is_stopped);
}

/* Somebody who writes what it likes has never been served anything, and is away now and then, for a moment. */
static void lie(uint64_t ns, uint64_t pause)
{
	for (uint64_t end = now + ns; now < end; go_on(MS)) {
		programs[1].claim.wants = pause == 0 || now % pause >= 2 * MS;
		programs[1].claim.said = now;
		programs[1].claim.served_ns = 0;
	}
}

static void test_others_that_lie(void **state)
{
	(void)state;
	for (uint64_t pause = 0; pause <= 300 * MS; pause += 150 * MS) {
		begin();
		start(0, EQUAL, 100, always);
		start(1, EQUAL, 100, always)->is_frozen = true;
		lie(1 * SECOND, pause);
		forget_what_they_got();
		lie(20 * SECOND, pause);
		assert_got(&programs[0], 20 * SECOND, 3, 30);
	}
}

/* As far as that can be while nobody waits for ever. */
static void test_extremes(void **state)
{
	(void)state;
	begin();
	start(0, EQUAL, 1, always);
	start(1, EQUAL, 10000, always);
	go_on(1 * SECOND);
	forget_what_they_got();
	go_on(20 * SECOND);
	assert_got(&programs[0], 20 * SECOND, 3, 10);
}

/* --- beside other rules ------------------------------------------------------------------------------------------------- */

/* The least served one is aside for another reason: nobody waits for it, and it has saved up nothing afterwards. */
static void test_least_served_is_held(void **state)
{
	(void)state;
	begin();
	start(0, EQUAL, 100, always);
	start(1, EQUAL, 100, always);
	go_on(1 * SECOND);
	programs[1].is_held = true;
	go_on(5 * MS);
	forget_what_they_got();
	go_on(1 * SECOND);
	assert_got(&programs[0], 1 * SECOND, 995, 1000);
	programs[1].is_held = false;
	go_on(2 * MS);
	forget_what_they_got();
	go_on(40 * MS);
	assert_got(&programs[0], 40 * MS, 400, 600);
}

static void test_other_priorities_have_no_share(void **state)
{
	(void)state;
	begin();
	start(0, EQUAL, 1, always);
	start(1, EQUAL - 1, 10000, always);
	go_on(1 * SECOND);
	forget_what_they_got();
	go_on(1 * SECOND);
	assert_got(&programs[0], 1 * SECOND, 950, 995);
}

/* --- another weight ------------------------------------------------------------------------------------------------------ */

static void test_changes(void **state)
{
	(void)state;
	begin();
	start(0, EQUAL, 1, always);
	start(1, EQUAL, 10000, always);
	go_on(1 * SECOND);
	weight_change(&programs[0].weight, 10000);
	go_on(20 * MS);
	forget_what_they_got();
	go_on(200 * MS);
	assert_got(&programs[0], 200 * MS, 440, 560);
	weight_change(&programs[1].weight, 5000);
	go_on(100 * MS);
	forget_what_they_got();
	go_on(5 * SECOND);
	assert_got(&programs[0], 5 * SECOND, 633, 700);
}

/* Its thread did not run for a minute: it has not seen what happened, and pays for no more than two leads. */
static void test_starved(void **state)
{
	(void)state;
	begin();
	start(0, EQUAL, 100, always);
	start(1, EQUAL, 100, always);
	go_on(1 * SECOND);
	programs[0].is_frozen = true;
	go_on(20 * SECOND);
	programs[0].is_frozen = false;
	go_on(30 * MS);
	forget_what_they_got();
	go_on(100 * MS);
	assert_got(&programs[0], 100 * MS, 440, 560);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shares),
		cmocka_unit_test(test_shares_where_changes_cost),
		cmocka_unit_test(test_equals),
		cmocka_unit_test(test_alone),
		cmocka_unit_test(test_saves_nothing),
		cmocka_unit_test(test_saves_nothing_in_short_pauses),
		cmocka_unit_test(test_shares_with_moments_without_work),
		cmocka_unit_test(test_pauses_make_nobody_wait),
		cmocka_unit_test(test_short_kernels_cost_little),
		cmocka_unit_test(test_comes_later),
		cmocka_unit_test(test_comes_while_others_pause),
		cmocka_unit_test(test_goes),
		cmocka_unit_test(test_is_stopped),
		cmocka_unit_test(test_others_that_lie),
		cmocka_unit_test(test_extremes),
		cmocka_unit_test(test_least_served_is_held),
		cmocka_unit_test(test_other_priorities_have_no_share),
		cmocka_unit_test(test_changes),
		cmocka_unit_test(test_starved),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
