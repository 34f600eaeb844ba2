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
	host_bound_look(&host, now, launched, true, true);
}

static void look(uint64_t launches, bool is_busy)
{
	launched += launches;
	host_bound_look(&host, now += LOOK, launched, is_busy, true);
}

static void look_often(unsigned int looks, uint64_t launches, bool is_busy)
{
	for (unsigned int i = 0; i < looks; i++)
		look(launches, is_busy);
}

#define LOOKS 256

/* Of 32 looks, `pauses`; then some launches are ahead. */
static void look_at_program(unsigned int pauses)
{
	for (unsigned int i = 0; i < LOOKS; i++)
		look(12, i % 32 >= pauses);
}

static uint64_t look_again(uint64_t ns, uint64_t launches, bool is_busy, bool rests)
{
	launched += launches;
	return host_bound_look(&host, now += ns, launched, is_busy, rests);
}

/* Of 32 pairs of looks at a program in doubt, `pauses` and then `waits` of the host. Between both looks of a pair, the
 * host launches unless the host waits. */
static void look_twice(unsigned int pauses, unsigned int waits)
{
	for (unsigned int i = 0; i < LOOKS; i++) {
		unsigned int at = i % 32;

		look(12, at >= pauses);
		look_again(50 * US, at < pauses || at >= pauses + waits ? 3 : 0, true, true);
	}
}

static void be_in_doubt(void)
{
	look_at_program(4);
	assert_int_equal(host.speed, HOST_MAY_BE_SLOW);
	look_again(50 * US, 3, true, true);
}

TEST(the_gpu_waits_in_an_eighth_of_the_looks)
{
	look_at_program(3);
	assert_int_equal(host.speed, HOST_IS_NOT_SLOW);
	look_at_program(4);
	assert_int_equal(host.speed, HOST_MAY_BE_SLOW);
}

TEST(the_gpu_waits_much_more_often_in_a_rest)
{
	be_in_doubt();
	look_twice(13, 3);
	assert_int_equal(host.speed, HOST_IS_SLOW);
	look_twice(13, 3);
	assert_int_equal(host.speed, HOST_IS_SLOW);
	look_twice(12, 3);
	assert_int_equal(host.speed, HOST_IS_NOT_SLOW);
}

TEST(no_doubt_for_a_while)
{
	be_in_doubt();
	look_twice(2, 2);
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
	look_often(LOOKS, 0, false);
	assert_int_equal(host.speed, HOST_IS_NOT_SLOW);
	be_in_doubt();
	look_often(LOOKS, 0, false);
	assert_int_equal(host.speed, HOST_MAY_BE_SLOW);
}

/* A look that comes late does not tell whether the host waited. */
TEST(late_second_looks_do_not_count)
{
	be_in_doubt();
	for (unsigned int i = 0; i < LOOKS; i++)
		look_again(1001 * US, 0, true, true);
	assert_int_equal(host.looks.all, 1);
	for (unsigned int i = 0; i < 2 * LOOKS; i++)
		look_again(1000 * US, 0, true, true);
	assert_int_equal(host.speed, HOST_IS_NOT_SLOW);
}

/* As under a quota, and where all looks come late. */
TEST(doubt_has_an_end)
{
	be_in_doubt();
	look_again(1990000 * US, 12, true, false);
	assert_int_equal(host.speed, HOST_MAY_BE_SLOW);
	look_again(10000 * US, 12, true, false);
	assert_int_equal(host.speed, HOST_IS_NOT_SLOW);
	assert_int_equal(host.until, now + 20000000 * US);
	host = (struct host_bound){.looked = now};
	be_in_doubt();
	look_twice(13, 0);
	look_again(3000000 * US, 12, false, true);
	assert_int_equal(host.speed, HOST_IS_SLOW);
}

TEST(a_program_in_doubt_is_looked_at_twice)
{
	assert_int_equal(look_again(LOOK, 12, true, true), HOST_BOUND_ANY_NS);
	be_in_doubt();
	assert_int_equal(look_again(10 * LOOK, 99, true, true), 50 * US);
	assert_int_equal(look_again(30 * US, 12, true, true), 20 * US);
	assert_int_equal(look_again(20 * US, 12, true, true), HOST_BOUND_ANY_NS);
	assert_int_equal(look_again(300 * US, 12, true, true), HOST_BOUND_ANY_NS);
	assert_int_equal(look_again(10 * LOOK, 0, false, true), HOST_BOUND_ANY_NS); /* without work */
	assert_int_equal(look_again(10 * LOOK, 99, true, false), HOST_BOUND_ANY_NS);
}

/* As under a quota: a program that borrows does not tell. */
TEST(only_a_rest_tells)
{
	be_in_doubt();
	for (unsigned int i = 0; i < LOOKS; i++) {
		look_again(LOOK, 12, false, i != LOOKS - 2);
		look_again(50 * US, 12, true, i != LOOKS - 2);
	}
	assert_int_equal(host.speed, HOST_MAY_BE_SLOW);
	look_twice(32, 0);
	assert_int_equal(host.speed, HOST_IS_SLOW);
}

TEST(looks_in_quick_succession)
{
	look_often(LOOKS / 4, 12, false);
	for (unsigned int i = 0; i < 3 * LOOKS; i++)
		host_bound_look(&host, now += US, ++launched, true, true);
	look_often(LOOKS - LOOKS / 4 - 3, 12, true);
	assert_int_equal(host.speed, HOST_IS_NOT_SLOW);
	look_often(1, 12, true);
	assert_int_equal(host.speed, HOST_MAY_BE_SLOW);
}

RUN_TESTS_IN(NULL, NULL, begin, NULL)
