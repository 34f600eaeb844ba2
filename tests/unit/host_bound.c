/* The rule for borrowers whose host is slower than the GPU (src/time/rules/host_bound.h). */
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
}

/* A look each half of a millisecond: so many launches since the last look, and in flight. */
static void look_for(uint64_t ns, uint64_t launches, uint64_t in_flight)
{
	for (uint64_t end = now + ns; now < end;) {
		now += MS / 2;
		launched += launches;
		host_bound_look(&host, now, launched, in_flight);
	}
}

TEST(launches_in_a_row_that_start_at_once)
{
	look_for(99 * MS, 50, 3);
	assert_false(host.is);
	look_for(10 * MS, 50, 3);
	assert_true(host.is);
}

/* A host that is far ahead; that waits for the GPU; that launches long kernels one by one; and that does nothing. */
TEST(hosts_that_wait_for_the_gpu)
{
	static const uint64_t cases[][2] = {{50, 64}, {0, 30}, {3, 1}, {0, 0}};

	for (unsigned int i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		look_for(SECOND, cases[i][0], cases[i][1]);
		assert_false(host.is);
	}
}

/* A batch of launches, and then a wait for the batch. */
TEST(batches)
{
	for (int i = 0; i < 200; i++) {
		look_for(MS / 2, 30, 25);
		look_for(MS, 0, 10);
	}
	assert_false(host.is);
}

/* In the pauses of the program there is no look with work. */
TEST(pauses)
{
	for (int i = 0; i < 20; i++) {
		look_for(10 * MS, 50, 2);
		look_for(50 * MS, 0, 0);
	}
	assert_true(host.is);
}

/* With lent TPCs the GPU is faster than the host. */
TEST(is_not_asked_again_at_once)
{
	look_for(200 * MS, 50, 3);
	assert_true(host.is);
	look_for(200 * MS, 50, 1000);
	assert_false(host.is);
	look_for(9 * SECOND, 50, 3);
	assert_false(host.is);
	look_for(SECOND, 50, 3);
	assert_true(host.is);
}

TEST(looks_in_quick_succession)
{
	look_for(99 * MS, 50, 3);
	for (int i = 0; i < 100; i++)
		host_bound_look(&host, now += MS / 1000, launched, 3);
	look_for(10 * MS, 50, 3);
	assert_true(host.is);
}

RUN_TESTS_IN(NULL, NULL, begin, NULL)
