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
