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
	host = (struct host_bound){.looked = 0};
	now = NOW;
	launched = 0;
	host_bound_look(&host, now, launched, 3, true);
}

static void look(uint64_t launches, uint64_t in_flight)
{
	launched += launches;
	host_bound_look(&host, now += LOOK, launched, in_flight, true);
}

static void look_often(unsigned int looks, uint64_t launches, uint64_t in_flight)
{
	for (unsigned int i = 0; i < looks; i++)
		look(launches, in_flight);
}

#define LOOKS 256

/* Of 32 looks, `pauses`; then some launches are ahead. */
static void look_at_program(unsigned int pauses)
{
	for (unsigned int i = 0; i < LOOKS; i++)
		look(12, i % 32 < pauses ? 0 : 9);
}

static uint64_t look_again(uint64_t ns, uint64_t launches, uint64_t in_flight, bool rests)
{
	launched += launches;
	return host_bound_look(&host, now += ns, launched, in_flight, rests);
}

/* Of 32 pairs of looks at a program in doubt, `pauses` and then `waits` of the host. Between both looks of a pair, the
 * host launches unless the host waits. */
static void look_twice(unsigned int pauses, unsigned int waits, uint64_t in_flight)
{
	for (unsigned int i = 0; i < LOOKS; i++) {
		unsigned int at = i % 32;

		look(12, at < pauses ? 0 : in_flight);
		look_again(50 * US, at < pauses || at >= pauses + waits ? 3 : 0, in_flight, true);
	}
}

static void be_in_doubt(void)
{
	look_at_program(4);
	assert_int_equal(host.speed, HOST_MAY_BE_SLOW);
	look_again(50 * US, 3, 9, true);
}

TEST(the_gpu_waits_in_an_eighth_of_the_looks)
{
	look_at_program(3);
	assert_int_equal(host.speed, HOST_IS_NOT_SLOW);
	look_at_program(4);
	assert_int_equal(host.speed, HOST_MAY_BE_SLOW);
}

TEST(the_gpu_waits_more_often_in_a_rest)
{
	be_in_doubt();
	look_twice(3, 2, 9);
	assert_int_equal(host.speed, HOST_IS_SLOW);
	look_twice(3, 2, 9);
	assert_int_equal(host.speed, HOST_IS_SLOW);
	look_twice(3, 3, 9);
	assert_int_equal(host.speed, HOST_IS_NOT_SLOW);
}

TEST(no_doubt_for_a_while)
{
	be_in_doubt();
	look_twice(2, 2, 9);
	assert_int_equal(host.speed, HOST_IS_NOT_SLOW);
	now += 19000 * 1000 * US;
	look_at_program(4);
	assert_int_equal(host.speed, HOST_IS_NOT_SLOW);
	for (int i = 0; i < 999 && host.speed == HOST_IS_NOT_SLOW; i++)
		look_at_program(4);
	assert_in_range(now, NOW + 20000 * 1000 * US, NOW + 20700 * 1000 * US);
}

TEST(a_pause_of_the_program_is_not_a_wait)
{
	look_often(LOOKS, 0, 0);
	assert_int_equal(host.speed, HOST_IS_NOT_SLOW);
	be_in_doubt();
	look_often(LOOKS, 0, 0);
	assert_int_equal(host.speed, HOST_MAY_BE_SLOW);
}

/* A look that comes late does not tell whether the host waited. */
TEST(late_second_looks_do_not_count)
{
	be_in_doubt();
	for (unsigned int i = 0; i < 9 * LOOKS; i++)
		look_again(1001 * US, 0, 9, true);
	assert_int_equal(host.speed, HOST_MAY_BE_SLOW);
	for (unsigned int i = 0; i < 2 * LOOKS; i++)
		look_again(1000 * US, 0, 9, true);
	assert_int_equal(host.speed, HOST_IS_NOT_SLOW);
}

TEST(a_program_in_doubt_is_looked_at_twice)
{
	assert_int_equal(look_again(LOOK, 12, 9, true), HOST_BOUND_ANY_NS);
	be_in_doubt();
	assert_int_equal(look_again(10 * LOOK, 99, 9, true), 50 * US);
	assert_int_equal(look_again(30 * US, 12, 9, true), 20 * US);
	assert_int_equal(look_again(20 * US, 12, 9, true), HOST_BOUND_ANY_NS);
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
		look_again(50 * US, 12, 9, i != LOOKS - 2);
	}
	assert_int_equal(host.speed, HOST_MAY_BE_SLOW);
	look_twice(32, 0, 9);
	assert_int_equal(host.speed, HOST_IS_SLOW);
}

TEST(looks_in_quick_succession)
{
	look_often(LOOKS / 4, 12, 0);
	for (unsigned int i = 0; i < 3 * LOOKS; i++)
		host_bound_look(&host, now += US, ++launched, 9, true);
	look_often(LOOKS - LOOKS / 4 - 3, 12, 9);
	assert_int_equal(host.speed, HOST_IS_NOT_SLOW);
	look_often(1, 12, 9);
	assert_int_equal(host.speed, HOST_MAY_BE_SLOW);
}

RUN_TESTS_IN(NULL, NULL, begin, NULL)
