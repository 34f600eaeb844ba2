/* The rule for borrowers with a slow host (src/time/rules/host_bound.h). */
#include "../cases.h"
#include "time/rules/host_bound.h"

#define US UINT64_C(1000)
#define LOOK (500 * US)
#define NOW (1000 * LOOK)
#define LOOKS 256
#define BUSY 9

static struct host_bound host;
static uint64_t now, launched;

static void look_after(uint64_t ns, uint64_t launches, uint64_t in_flight, bool is_blocked, bool rests)
{
	launched += launches;
	const struct host_look look = {.launched = launched, .in_flight = in_flight, .is_blocked = is_blocked};

	host_bound_look(&host, now += ns, &look, rests);
}

FIXTURE(begin)
{
	host = (struct host_bound){.looked = 0};
	now = NOW;
	launched = 0;
	look_after(0, 0, BUSY, false, true); /* comes too late to count */
}

static void look(uint64_t launches, uint64_t in_flight)
{
	look_after(LOOK, launches, in_flight, false, true);
}

static void look_often(unsigned int looks, uint64_t launches, uint64_t in_flight)
{
	for (unsigned int i = 0; i < looks; i++)
		look(launches, in_flight);
}

/* Of 32 looks, the GPU waits in `pauses`. */
static void look_at_pauses(unsigned int pauses)
{
	for (unsigned int i = 0; i < LOOKS; i++)
		look(12, i % 32 < pauses ? 0 : BUSY);
}

/* Of 256 looks, the host waits in the first, with so many launches in the time of each look. */
static void assert_speed(unsigned int waits, uint64_t launches, enum host_speed speed)
{
	for (unsigned int i = 0; i < LOOKS; i++)
		look_after(LOOK, launches, BUSY, i < waits, true);
	assert_int_equal(host.speed, speed);
}

static void be_in_doubt(void)
{
	look_at_pauses(4);
	assert_int_equal(host.speed, HOST_MAY_BE_SLOW);
}

TEST(the_gpu_waits_in_an_eighth_of_the_looks)
{
	look_at_pauses(3);
	assert_int_equal(host.speed, HOST_IS_NOT_SLOW);
	look_at_pauses(4);
	assert_int_equal(host.speed, HOST_MAY_BE_SLOW);
}

/* 10 launches in 500 us cost 10 %. */
TEST(waits_are_longer_than_launches_would_cost)
{
	be_in_doubt();
	assert_speed(25, 10, HOST_IS_SLOW);
	assert_speed(25, 10, HOST_IS_SLOW);
	assert_speed(26, 10, HOST_IS_NOT_SLOW);
}

TEST(more_launches_cost_more)
{
	be_in_doubt();
	assert_speed(50, 20, HOST_IS_SLOW);
	assert_speed(50, 19, HOST_IS_NOT_SLOW);
}

/* In a call that waits, as for a copy. */
TEST(a_thread_is_blocked_beside_an_idle_gpu)
{
	be_in_doubt();
	for (unsigned int i = 0; i < LOOKS; i++)
		look_after(LOOK, 12, 0, true, true);
	assert_int_equal(host.speed, HOST_IS_SLOW);
}

TEST(work_without_launches)
{
	be_in_doubt();
	look_often(LOOKS, 0, BUSY);
	assert_int_equal(host.speed, HOST_IS_SLOW);
}

TEST(the_queue_is_full)
{
	be_in_doubt();
	look_often(LOOKS, 12, 767);
	assert_int_equal(host.speed, HOST_IS_SLOW);
	look_often(LOOKS, 12, 768);
	assert_int_equal(host.speed, HOST_IS_NOT_SLOW);
}

TEST(no_doubt_for_a_while)
{
	be_in_doubt();
	assert_speed(LOOKS, 10, HOST_IS_NOT_SLOW);
	uint64_t trusted = now;

	now += 19000000 * US;
	look_at_pauses(4);
	assert_int_equal(host.speed, HOST_IS_NOT_SLOW);
	for (int i = 0; i < 999 && host.speed == HOST_IS_NOT_SLOW; i++)
		look_at_pauses(4);
	assert_in_range(now, trusted + 20000000 * US, trusted + 20700000 * US);
}

TEST(a_pause_of_the_program_does_not_count)
{
	look_often(LOOKS, 4, 0);
	assert_int_equal(host.speed, HOST_IS_NOT_SLOW);
	be_in_doubt();
	look_often(LOOKS, 4, 0);
	assert_int_equal(host.speed, HOST_MAY_BE_SLOW);
	look_often(LOOKS, 5, 0);
	assert_int_equal(host.speed, HOST_IS_SLOW);
}

TEST(late_looks_do_not_count)
{
	for (unsigned int i = 0; i < LOOKS; i++)
		look_after(20001 * US, 999, 0, false, true);
	assert_int_equal(host.speed, HOST_IS_NOT_SLOW);
	for (unsigned int i = 0; i < LOOKS; i++)
		look_after(20000 * US, 999, 0, false, true);
	assert_int_equal(host.speed, HOST_MAY_BE_SLOW);
}

/* As under a quota. */
TEST(doubt_has_an_end)
{
	be_in_doubt();
	look_after(1990000 * US, 12, BUSY, false, false);
	assert_int_equal(host.speed, HOST_MAY_BE_SLOW);
	look_after(10000 * US, 12, BUSY, false, false);
	assert_int_equal(host.speed, HOST_IS_NOT_SLOW);
	assert_int_equal(host.until, now + 20000000 * US);
	host = (struct host_bound){.looked = now};
	be_in_doubt();
	look_after(9000000 * US, 12, BUSY, false, true); /* the program rested */
	assert_int_equal(host.speed, HOST_MAY_BE_SLOW);
	look_often(LOOKS, 12, BUSY);
	look_after(3000000 * US, 12, BUSY, false, true);
	assert_int_equal(host.speed, HOST_IS_SLOW);
}

/* A program that borrows does not tell. */
TEST(only_a_rest_tells)
{
	be_in_doubt();
	for (unsigned int i = 0; i < LOOKS; i++)
		look_after(LOOK, 12, BUSY, false, i != LOOKS - 2);
	assert_int_equal(host.speed, HOST_MAY_BE_SLOW);
	look_often(LOOKS - 1, 12, BUSY);
	assert_int_equal(host.speed, HOST_IS_SLOW);
}

TEST(looks_in_quick_succession)
{
	look_often(LOOKS / 4, 12, 0);
	for (unsigned int i = 0; i < 3 * LOOKS; i++)
		look_after(US, 1, BUSY, false, true);
	look_often(LOOKS - LOOKS / 4 - 2, 12, BUSY);
	assert_int_equal(host.speed, HOST_IS_NOT_SLOW);
	look_often(1, 12, BUSY);
	assert_int_equal(host.speed, HOST_MAY_BE_SLOW);
}

RUN_TESTS_IN(NULL, NULL, begin, NULL)
