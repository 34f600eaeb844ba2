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
	host_bound_look(&host, now, launched, 3);
}

static bool look(uint64_t launches, uint64_t in_flight)
{
	launched += launches;
	host_bound_look(&host, now += LOOK, launched, in_flight);
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

TEST(the_gpu_waits_in_an_eighth_of_the_looks)
{
	look_at_program(3, 0);
	assert_false(host.is);
	look_at_program(4, 0);
	assert_true(host.is);
	assert_false(host.is_in_phase);
	assert_int_equal(host.speed, HOST_MAY_BE_SLOW);
	look_at_program(4, 0);
	assert_int_equal(host.speed, HOST_IS_SLOW);
	assert_true(host.is);
}

TEST(the_host_waits_as_well)
{
	look_at_program(4, 1);
	assert_false(host.is);
	look_at_program(5, 1);
	assert_true(host.is);
}

/* As a program that gains: with further TPCs only the GPU waits. */
TEST(the_host_waits_in_a_rest)
{
	look_at_program(4, 0);
	look_at_program(4, 2);
	assert_false(host.is);
	now += 19000 * 1000 * US;
	look_at_program(4, 0);
	assert_false(host.is);
	for (int i = 0; i < 999 && !host.is; i++)
		look_at_program(4, 0);
	assert_true(host.is);
	assert_in_range(now, NOW + 20000 * 1000 * US, NOW + 20600 * 1000 * US);
}

TEST(a_slow_host_may_wait_now_and_then)
{
	look_at_program(4, 0);
	look_at_program(2, 1);
	look_at_program(1, 1);
	assert_int_equal(host.speed, HOST_IS_SLOW);
	look_at_program(1, 2);
	assert_false(host.is);
}

TEST(the_gpu_waits_no_more)
{
	look_at_program(4, 0);
	look_at_program(0, 1);
	assert_false(host.is);
}

/* The host waits for each launch. */
TEST(a_slow_host_has_several_launches_in_flight)
{
	for (unsigned int i = 0; i < LOOKS; i++)
		look(12, i % 4 != 0);
	assert_false(host.is);
	for (unsigned int i = 0; i < LOOKS; i++)
		look(12, i % 4 == 0 ? 0 : i == 99 ? 3 : 1);
	assert_int_not_equal(host.speed, HOST_IS_NOT_SLOW);
}

TEST(an_idle_gpu_waits_for_the_host)
{
	for (unsigned int i = 0; i < LOOKS; i++)
		look(12, i % 2);
	assert_int_not_equal(host.speed, HOST_IS_NOT_SLOW);
}

TEST(a_pause_of_the_program_is_not_a_wait)
{
	look_often(LOOKS, 0, 0);
	assert_false(host.is);
	look_at_program(4, 0);
	look_often(LOOKS, 0, 0);
	assert_int_equal(host.speed, HOST_MAY_BE_SLOW);
}

static uint64_t look_after(uint64_t ns)
{
	return host_bound_look(&host, now += ns, launched += 99, 9);
}

/* A look that comes late does not tell whether the host waited. */
TEST(a_slow_host_is_looked_at_twice)
{
	assert_int_equal(look_after(10 * LOOK), HOST_BOUND_ANY_NS);
	look_at_program(4, 0);
	assert_int_equal(look_after(10 * LOOK), HOST_BOUND_ANY_NS);
	look_at_program(4, 0);
	assert_int_equal(look_after(10 * LOOK), LOOK);
	assert_int_equal(look_after(LOOK), HOST_BOUND_ANY_NS);
	assert_int_equal(host_bound_look(&host, now += 10 * LOOK, launched, 0), HOST_BOUND_ANY_NS);
	for (unsigned int i = 0; i < LOOKS; i++)
		look_after(10 * LOOK);
	assert_int_equal(host.speed, HOST_IS_SLOW);
}

TEST(looks_in_quick_succession)
{
	look_often(3, 12, 0);
	for (int i = 0; i < 399; i++)
		host_bound_look(&host, now += US, launched, 900);
	assert_true(host.is);
	host_bound_look(&host, now += US, launched, 900);
	assert_true(host.is);
	assert_false(look(12, 900));
}

RUN_TESTS_IN(NULL, NULL, begin, NULL)
