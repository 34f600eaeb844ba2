/* The rule for borrowers with a slow host (src/time/rules/host_bound.h). */
#include "../cases.h"
#include "time/rules/host_bound.h"

#define US UINT64_C(1000)
#define LOOK (500 * US)
#define NOW (1000 * LOOK)

static struct host_bound host;
static uint64_t now, launched;

FIXTURE(begin)
{
	host = (struct host_bound){.is = false};
	now = NOW;
	launched = 0;
	host_bound_look(&host, now, launched, 3, true);
}

static bool look(uint64_t launches, uint64_t in_flight)
{
	launched += launches;
	host_bound_look(&host, now += LOOK, launched, in_flight, true);
	return host.is;
}

static void look_often(unsigned int looks, uint64_t launches, uint64_t in_flight)
{
	for (unsigned int i = 0; i < looks; i++)
		look(launches, in_flight);
}

TEST(the_gpu_waits_for_the_host)
{
	assert_false(look(12, 0));
	assert_false(look(12, 2));
	assert_false(look(12, 0));
	assert_false(look(12, 99));
	assert_true(look(12, 0));
	look_often(7, 12, 7);
	assert_true(look(12, 0));
}

TEST(three_pauses_of_nine_looks)
{
	assert_false(look(12, 0));
	look_often(3, 12, 1);
	assert_false(look(12, 0));
	look_often(3, 12, 1);
	assert_false(look(12, 0));
	look_often(2, 12, 1);
	assert_false(look(12, 1));
}

TEST(many_launches_end_the_phase)
{
	look_often(9, 12, 0);
	assert_true(look(12, 8));
	assert_true(look(12, 7));
	assert_true(look(12, 8));
	assert_false(look(12, 8));
	assert_false(look(12, 0));
	assert_false(look(12, 0));
	assert_true(look(12, 0));
}

/* A host that waits for each of two launches gains from each. */
TEST(never_more_than_two_launches)
{
	look_often(29, 12, 0);
	assert_true(look(12, 2));
	look_often(8, 12, 0);
	assert_false(look(12, 2));
	look_often(99, 12, 0);
	assert_false(host.is);
	look_often(2, 12, 3);
	look_often(3, 12, 0);
	assert_true(host.is);
}

/* A program that waits for each launch. */
TEST(always_some_work_ends_the_phase)
{
	look_often(9, 12, 0);
	look_often(7, 1, 1);
	assert_true(host.is);
	assert_false(look(1, 1));
	assert_false(look(1, 0));
}

/* As a service, where a launch pays to be short. */
TEST(single_launches_do_not_count)
{
	look_often(9, 4, 0);
	assert_false(host.is);
	look_often(3, 5, 0);
	assert_true(host.is);
}

TEST(a_pause_of_the_program_ends_the_phase)
{
	look_often(3, 12, 0);
	look_often(20, 0, 0);
	assert_true(host.is);
	assert_false(look(0, 0));
	assert_false(look(12, 3));
	look_often(3, 12, 0);
	assert_true(host.is);
}

/* --- the program ------------------------------------------------------------------------------------------------ */

#define LOOKS 256

/* Of 32 looks: `pauses`, then `waits` of the host, then some launches ahead. The phase is never host-bound. */
static void look_at_program(unsigned int pauses, unsigned int waits)
{
	for (unsigned int i = 0; i < LOOKS; i++) {
		unsigned int at = i % 32;

		if (at % 2 == 1 || at / 2 >= pauses + waits)
			look(12, 9);
		else
			look(at / 2 < pauses ? 12 : 0, at / 2 < pauses ? 0 : 9);
	}
}

static uint64_t look_again(uint64_t ns, uint64_t launches, uint64_t in_flight, bool rests)
{
	launched += launches;
	return host_bound_look(&host, now += ns, launched, in_flight, rests);
}

/* Likewise, of 32 pairs of looks at a program in doubt. Between both looks of a pair, the host launches unless the host
 * waits. */
static void look_twice(unsigned int pauses, unsigned int waits, uint64_t in_flight)
{
	for (unsigned int i = 0; i < LOOKS; i++) {
		unsigned int at = i % 32;

		look(12, at < pauses ? 0 : in_flight);
		look_again(100 * US, at < pauses || at >= pauses + waits ? 3 : 0, in_flight, true);
	}
}

static void be_in_doubt(void)
{
	look_at_program(4, 0);
	assert_int_equal(host.speed, HOST_MAY_BE_SLOW);
	look_again(100 * US, 3, 9, true);
}

TEST(the_gpu_waits_in_an_eighth_of_the_looks)
{
	look_at_program(3, 0);
	assert_false(host.is);
	look_at_program(4, 0);
	assert_true(host.is);
	assert_false(host.is_in_phase);
	assert_int_equal(host.speed, HOST_MAY_BE_SLOW);
}

TEST(the_host_waits_as_well)
{
	look_at_program(4, 1);
	assert_false(host.is);
	look_at_program(5, 1);
	assert_true(host.is);
}

TEST(the_gpu_waits_more_often_in_a_rest)
{
	be_in_doubt();
	look_twice(3, 2, 9);
	assert_int_equal(host.speed, HOST_IS_SLOW);
	look_twice(3, 2, 9);
	assert_int_equal(host.speed, HOST_IS_SLOW);
	assert_true(host.is);
	look_twice(3, 3, 9);
	assert_int_equal(host.speed, HOST_IS_NOT_SLOW);
}

TEST(no_doubt_for_a_while)
{
	be_in_doubt();
	look_twice(2, 2, 9);
	assert_int_equal(host.speed, HOST_IS_NOT_SLOW);
	now += 19000 * 1000 * US;
	look_at_program(4, 0);
	assert_int_equal(host.speed, HOST_IS_NOT_SLOW);
	for (int i = 0; i < 999 && host.speed == HOST_IS_NOT_SLOW; i++)
		look_at_program(4, 0);
	assert_in_range(now, NOW + 20000 * 1000 * US, NOW + 20700 * 1000 * US);
}

/* A host that waits for each launch has few in flight. */
TEST(the_host_waits_for_each_launch)
{
	for (unsigned int i = 0; i < LOOKS; i++)
		look(12, i % 4 != 0);
	assert_int_equal(host.speed, HOST_IS_NOT_SLOW);
	for (unsigned int i = 0; i < LOOKS; i++)
		look(12, i % 4 == 0 ? 0 : i == 99 ? 3 : 1);
	assert_int_equal(host.speed, HOST_MAY_BE_SLOW);
	look_again(100 * US, 3, 1, true);
	look_twice(15, 0, 1);
	assert_int_equal(host.speed, HOST_IS_NOT_SLOW);
}

TEST(an_idle_gpu_waits_for_the_host)
{
	for (unsigned int i = 0; i < LOOKS; i++)
		look(12, i % 2);
	assert_int_equal(host.speed, HOST_MAY_BE_SLOW);
	look_again(100 * US, 3, 1, true);
	look_twice(16, 0, 1);
	assert_int_equal(host.speed, HOST_IS_SLOW);
}

TEST(a_pause_of_the_program_is_not_a_wait)
{
	look_often(LOOKS, 0, 0);
	assert_false(host.is);
	be_in_doubt();
	look_often(LOOKS, 0, 0);
	assert_int_equal(host.speed, HOST_MAY_BE_SLOW);
}

/* A look that comes late does not tell whether the host waited. */
TEST(late_looks_raise_no_doubt)
{
	for (unsigned int i = 0; i < LOOKS; i++)
		look_again(2 * LOOK + US, 12 * (i % 4), i % 4 == 0 ? 0 : 9, true);
	for (unsigned int i = 0; i < LOOKS; i++)
		look_again(2 * LOOK + US, 99, i % 4 == 0 ? 0 : 9, true);
	assert_int_equal(host.speed, HOST_IS_NOT_SLOW);
	for (unsigned int i = 0; i < LOOKS; i++)
		look_again(2 * LOOK, 99, i % 4 == 0 ? 0 : 9, true);
	assert_int_equal(host.speed, HOST_MAY_BE_SLOW);
}

TEST(a_program_in_doubt_is_looked_at_twice)
{
	assert_int_equal(look_again(LOOK, 12, 9, true), HOST_BOUND_ANY_NS);
	be_in_doubt();
	assert_int_equal(look_again(10 * LOOK, 99, 9, true), 100 * US);
	assert_int_equal(look_again(30 * US, 12, 9, true), 70 * US);
	assert_int_equal(look_again(70 * US, 12, 9, true), HOST_BOUND_ANY_NS);
	assert_int_equal(look_again(300 * US, 12, 9, true), HOST_BOUND_ANY_NS);
	assert_int_equal(look_again(10 * LOOK, 0, 0, true), HOST_BOUND_ANY_NS); /* without work */
	assert_int_equal(look_again(10 * LOOK, 99, 9, false), HOST_BOUND_ANY_NS);
}

/* As under a quota: a program that borrows does not tell. */
TEST(only_a_rest_tells)
{
	be_in_doubt();
	for (unsigned int i = 0; i < LOOKS; i++) {
		look_again(LOOK, 12, 0, i != LOOKS - 2);
		look_again(100 * US, 12, 9, i != LOOKS - 2);
	}
	assert_int_equal(host.speed, HOST_MAY_BE_SLOW);
	look_twice(32, 0, 9);
	assert_int_equal(host.speed, HOST_IS_SLOW);
}

TEST(looks_in_quick_succession)
{
	look_often(3, 12, 0);
	for (int i = 0; i < 399; i++)
		host_bound_look(&host, now += US, launched, 900, true);
	assert_true(host.is);
	host_bound_look(&host, now += US, launched, 900, true);
	assert_true(host.is);
	assert_false(look(12, 900));
}

RUN_TESTS_IN(NULL, NULL, begin, NULL)
