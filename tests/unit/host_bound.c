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

static const uint64_t host_is_slow[] = {0, 0, 1, 3}, host_is_slower_in_part[] = {0, 2, 9, 30},
                      host_is_ahead[] = {70, 500, 900, 1000};

TEST(a_slow_host)
{
	look_for(199 * MS, 12, host_is_slow);
	assert_false(host.is);
	look_for(10 * MS, 12, host_is_slow);
	assert_true(host.is);
	look_for(SECOND, 12, host_is_slower_in_part);
	assert_true(host.is);
}

/* Hosts: far ahead; waiting for all launches; waiting for each; idle. */
TEST(hosts_that_wait_for_the_gpu)
{
	static const struct {
		uint64_t launches, in_flight[4];
	} cases[] = {{12, {70, 500, 900, 1000}}, {0, {1, 1, 0, 30}}, {12, {1, 0, 1, 1}}, {5, {0, 1, 0, 1}},
	             {0, {0, 0, 0, 0}}};

	for (unsigned int i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		look_for(SECOND, cases[i].launches, cases[i].in_flight);
		assert_false(host.is);
	}
}

/* A batch of launches, a wait for the batch, and a pause of the host. */
TEST(batches)
{
	static const uint64_t batch[] = {25, 25, 25, 25}, rest[] = {20, 10, 5, 1}, pause[] = {0, 0, 0, 0};

	for (int i = 0; i < 200; i++) {
		look_for(MS / 2, 30, batch);
		look_for(MS, 0, rest);
		look_for(MS, 5, pause);
	}
	assert_false(host.is);
}

/* A host waits for each short kernel. */
TEST(pauses_longer_than_kernels)
{
	static const uint64_t one[] = {0, 1, 0, 0};

	look_for(SECOND, 12, one);
	assert_true(host.is);
}

/* Pauses of the program do not count. */
TEST(a_slow_host_with_pauses)
{
	static const uint64_t nothing[] = {0, 0, 0, 0};

	for (int i = 0; i < 40; i++) {
		look_for(10 * MS, 12, host_is_slow);
		look_for(50 * MS, 0, nothing);
	}
	assert_true(host.is);
}

/* The GPU is faster than the host with lent TPCs only. */
TEST(is_not_asked_again_at_once)
{
	look_for(300 * MS, 12, host_is_slow);
	assert_true(host.is);
	look_for(600 * MS, 12, host_is_ahead);
	assert_false(host.is);
	look_for(9 * SECOND, 12, host_is_slow);
	assert_false(host.is);
	look_for(2 * SECOND, 12, host_is_slow);
	assert_true(host.is);
}

TEST(looks_in_quick_succession)
{
	look_for(100 * MS, 12, host_is_slow);
	for (int i = 0; i < 400; i++)
		host_bound_look(&host, now += MS / 1000, launched, 900);
	look_for(110 * MS, 12, host_is_slow);
	assert_true(host.is);
}

RUN_TESTS_IN(NULL, NULL, begin, NULL)
