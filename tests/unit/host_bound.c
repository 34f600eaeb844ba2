/* The rule for borrowers with a slow host (src/time/rules/host_bound.h). */
#include "../cases.h"
#include "time/rules/host_bound.h"

#define MS UINT64_C(1000000)
#define SECOND (1000 * MS)
#define NOW (100 * SECOND)

static struct host_bound host;
static uint64_t now, launched;

FIXTURE(begin)
{
	host = (struct host_bound){.is = false};
	now = NOW;
	launched = 0;
	host_bound_look(&host, now, launched, 0);
}

/* A look each half of a millisecond; in the looks in turn, so many launches are in flight. */
static void look_for(uint64_t ns, uint64_t launches, const uint64_t in_flight[4])
{
	unsigned int turn = 0;

	for (uint64_t end = now + ns; now < end;) {
		now += MS / 2;
		launched += launches;
		host_bound_look(&host, now, launched, in_flight[turn++ % 4]);
	}
}

static const uint64_t pauses[] = {0, 0, 1, 3}, pauses_less[] = {0, 2, 9, 30}, is_busy[] = {70, 500, 900, 1000};

/* With lent TPCs, and with the own ones. */
static void work(uint64_t wide_launches, uint64_t launches)
{
	look_for(SECOND, wide_launches, pauses);
	assert_true(host.is);
	look_for(SECOND, launches, pauses_less);
}

TEST(a_slow_host)
{
	look_for(SECOND - MS, 12, pauses);
	assert_false(host.is);
	look_for(MS, 12, pauses);
	assert_true(host.is);
	look_for(19 * SECOND, 12, pauses_less);
	assert_true(host.is);
}

/* The host has further work for each launch that may borrow. */
TEST(borrowing_costs_more_than_it_gains)
{
	work(12, 14);
	assert_true(host.is);
	look_for(5 * SECOND, 14, is_busy);
	assert_true(host.is);
}

TEST(borrowing_gains)
{
	work(12, 11);
	assert_false(host.is);
	look_for(19 * SECOND, 12, pauses);
	assert_false(host.is);
	look_for(2 * SECOND, 12, pauses);
	assert_true(host.is);
}

TEST(uneven_by_a_few_launches)
{
	work(60, 59);
	assert_true(host.is);
}

/* The program may have changed. */
TEST(is_asked_again)
{
	work(12, 12);
	look_for(20 * SECOND + SECOND / 2, 12, pauses_less);
	assert_false(host.is);
	look_for(SECOND, 12, is_busy);
	assert_false(host.is);
}

/* A busy GPU; waits for all launches; launches far apart; and no work. */
TEST(no_slow_hosts)
{
	static const struct {
		uint64_t launches, in_flight[4];
	} cases[] = {{12, {70, 500, 900, 1000}}, {0, {1, 1, 1, 30}}, {3, {0, 1, 0, 1}}, {0, {0, 0, 0, 0}}};

	for (unsigned int i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		look_for(5 * SECOND, cases[i].launches, cases[i].in_flight);
		assert_false(host.is);
	}
}

/* Pauses of the program do not count, however long. */
TEST(a_slow_host_with_pauses)
{
	static const uint64_t nothing[] = {0, 0, 0, 0};

	for (int i = 0; i < 99; i++) {
		look_for(10 * MS, 12, pauses);
		look_for(50 * MS, 0, nothing);
		now += SECOND;
		look_for(MS / 2, 12, is_busy);
	}
	assert_false(host.is);
	look_for(100 * MS, 12, pauses);
	assert_true(host.is);
}

TEST(looks_in_quick_succession)
{
	look_for(SECOND / 2, 12, pauses);
	for (int i = 0; i < 1000; i++)
		host_bound_look(&host, now += MS / 1000, launched, 900);
	look_for(SECOND / 2 + MS, 12, pauses);
	assert_true(host.is);
}

RUN_TESTS_IN(NULL, NULL, begin, NULL)
