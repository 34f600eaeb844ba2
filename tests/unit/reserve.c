/*
 * Whether there is room for a launch, on a clock of this file's own. The timelines are worked out by hand from TimeGraph
 * (Kato et al., USENIX ATC 2011, 5.1 and figure 6); random loads run on a GPU that executes one launch after the other.
 */
#include "shim/reserve.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdlib.h>

#define MS INT64_C(1000000)
#define SECOND (1000 * MS)
#define BEGIN ((uint64_t)(5 * SECOND))

static struct reserve reserve;

/* Times are in ms from the begin. */
static uint64_t at(int64_t ms)
{
	return BEGIN + (uint64_t)(ms * MS);
}

static void begin(enum reserve_policy policy, int64_t run, int64_t period)
{
	reserve = (struct reserve){.left_ns = 0};
	reserve_begin(&reserve, policy, run * MS, period * MS, at(0));
}

static struct reserve_launch launch(int64_t predicted)
{
	return reserve_launch(&reserve, (uint64_t)(predicted * MS));
}

static void assert_goes(struct reserve_launch *launch, int64_t when)
{
	assert_true(reserve_has_room(&reserve, launch, at(when)));
	reserve_go(&reserve, launch, at(when));
}

static void assert_waits(struct reserve_launch *launch, int64_t when, int64_t until)
{
	assert_false(reserve_has_room(&reserve, launch, at(when)));
	assert_int_equal(reserve_wait(&reserve, launch, at(when)), at(until));
}

static void assert_still_waits(const struct reserve_launch *launch, int64_t when)
{
	assert_false(reserve_has_room(&reserve, launch, at(when)));
}

static void end(const struct reserve_launch *launch, int64_t used, int64_t when, int64_t left)
{
	reserve_ended(&reserve, launch, (uint64_t)(used * MS), at(when));
	assert_int_equal(reserve.left_ns, left * MS);
}

/* --- figure 6: four launches, C = 4, T = 10 ----------------------------------------------------------------------- */

/*
 * (a), Posterior Enforcement. The launches take 2, 5, 2 and 3.
 *
 *   time   e
 *    0     4     1 goes
 *    2     2     1 has ended; 2 goes, since e > 0
 *    7    -3     2 has ended, and has overrun: 3 waits, though the GPU is idle
 *   10     1     e = min(C, e + C) = -3 + 4; 3 goes
 *   12    -1     3 has ended; 4 waits
 *   20     3     4 goes
 *   23     0     4 has ended; e > 0 is needed
 *   30     4
 */
static void test_posterior(void **state)
{
	struct reserve_launch one = {0}, two = {0}, three = {0}, four = {0}, five = {0};

	(void)state;
	begin(RESERVE_POSTERIOR, 4, 10);
	one = launch(2);
	two = launch(5);
	three = launch(2);
	four = launch(3);
	five = launch(1);
	assert_goes(&one, 0);
	end(&one, 2, 2, 2);
	assert_goes(&two, 2);
	end(&two, 5, 7, -3);
	assert_waits(&three, 7, 10);
	assert_still_waits(&three, 9);
	assert_goes(&three, 10);
	end(&three, 2, 12, -1);
	assert_waits(&four, 12, 20);
	assert_goes(&four, 20);
	end(&four, 3, 23, 0);
	assert_waits(&five, 23, 30);
	assert_goes(&five, 30);
}

/* Two that wait go without anybody's knowing it: the third one is the first now. Without that, it would have to leave room for
 * them, for ever. */
static void test_forgotten(void **state)
{
	struct reserve_launch one = {0}, two = {0}, three = {0}, four = {0};

	(void)state;
	begin(RESERVE_POSTERIOR, 4, 10);
	one = launch(4);
	two = launch(4);
	three = launch(4);
	four = launch(3);
	assert_goes(&one, 0);
	end(&one, 4, 4, 0);
	assert_waits(&two, 4, 10);
	assert_waits(&three, 4, 40);
	reserve_forget(&reserve, two.needs_ns + three.needs_ns);
	assert_waits(&four, 5, 10);
	assert_goes(&four, 10);
	end(&four, 3, 13, 1);
}

/*
 * (b), Apriori Enforcement, the same launches.
 *
 *   time   e
 *    0     4     1 goes, since e >= x = 2
 *    2     2     1 has ended; 2 waits, since its x = 5 > e
 *   10     5     x > C: e = min(x, e + C) = min(5, 6); 2 goes
 *   15     0     2 has ended; 3 waits
 *   20     4     3 goes
 *   22     2     3 has ended; 4 waits, since its x = 3 > e
 *   30     4     x <= C: e is bounded by C, though e + C = 6; 4 goes
 *   33     1
 */
static void test_apriori(void **state)
{
	struct reserve_launch one, two, three, four;

	(void)state;
	begin(RESERVE_APRIORI, 4, 10);
	one = launch(2);
	two = launch(5);
	three = launch(2);
	four = launch(3);
	assert_goes(&one, 0);
	end(&one, 2, 2, 2);
	assert_waits(&two, 2, 10);
	assert_still_waits(&two, 9);
	assert_goes(&two, 10);
	end(&two, 5, 15, 0);
	assert_waits(&three, 15, 20);
	assert_goes(&three, 20);
	end(&three, 2, 22, 2);
	assert_waits(&four, 22, 30);
	assert_still_waits(&four, 29);
	assert_goes(&four, 30);
	end(&four, 3, 33, 1);
}

/* --- launches that are longer than C (5.1) ------------------------------------------------------------------------ */

/*
 * PE: the penalty of 21 is on the next replenishments.
 *
 *   time         e
 *    0           4            it goes
 *   10, 20       4, 4         e = min(C, e + C)
 *   21         -17            it has ended
 *   30 … 60    -13 -9 -5 -1
 *   70           3            the next one goes
 */
static void test_posterior_long(void **state)
{
	struct reserve_launch one, two;

	(void)state;
	begin(RESERVE_POSTERIOR, 4, 10);
	one = launch(21);
	assert_goes(&one, 0);
	end(&one, 21, 21, -17);
	two = launch(1);
	assert_waits(&two, 21, 70);
	assert_still_waits(&two, 69);
	assert_goes(&two, 70);
	assert_int_equal(reserve.left_ns, 3 * MS);
}

/*
 * AE: e is saved up to x = 10 and no more; with nobody waiting it is C again.
 *
 *   time   e
 *    0     4     1 waits
 *   10     8
 *   20    10     e = min(x, e + C) = min(10, 12); 1 goes
 *   29     1     it took 9
 *   30     4     e = min(C, e + C) with x = 0
 */
static void test_apriori_long(void **state)
{
	struct reserve_launch one, two;

	(void)state;
	begin(RESERVE_APRIORI, 4, 10);
	one = launch(10);
	assert_waits(&one, 0, 20);
	assert_still_waits(&one, 10);
	assert_int_equal(reserve.left_ns, 8 * MS);
	assert_goes(&one, 20);
	assert_int_equal(reserve.left_ns, 10 * MS);
	end(&one, 9, 29, 1);
	two = launch(4);
	assert_waits(&two, 29, 30);
	assert_goes(&two, 30);
	assert_int_equal(reserve.left_ns, 4 * MS);
}

/*
 * While one is in flight for several periods, what it speaks for does not lapse, and the next one saves up.
 *
 *   time   e                of it, in flight
 *    0     4                0     1, x = 24, waits: (24 - 4) / 4 = 5 periods
 *   50    24               24     1 goes; 2, x = 10, waits
 *   60    28               24
 *   70    32               24     e = min(24 + 10, e + C)
 *   74     8                0     1 has ended
 *   80    10                0     2 goes
 */
static void test_apriori_over_periods(void **state)
{
	struct reserve_launch one, two;

	(void)state;
	begin(RESERVE_APRIORI, 4, 10);
	one = launch(24);
	two = launch(10);
	assert_waits(&one, 0, 50);
	assert_goes(&one, 50);
	assert_int_equal(reserve.left_ns, 24 * MS);
	assert_false(reserve_has_room(&reserve, &two, at(51)));
	reserve_wait(&reserve, &two, at(51));
	assert_still_waits(&two, 60);
	assert_int_equal(reserve.left_ns, 28 * MS);
	end(&one, 24, 74, 8);
	assert_still_waits(&two, 79);
	assert_goes(&two, 80);
	assert_int_equal(reserve.left_ns, 10 * MS);
}

/* --- several launches --------------------------------------------------------------------------------------------- */

/* C = 4: those in flight speak for 3 and 3, so a third one has to wait, until it is known that they took less. */
static void test_in_flight(void **state)
{
	struct reserve_launch one, two, three;

	(void)state;
	begin(RESERVE_POSTERIOR, 4, 10);
	one = launch(3);
	two = launch(3);
	three = launch(3);
	assert_goes(&one, 0);
	assert_goes(&two, 0);
	assert_false(reserve_has_room(&reserve, &three, at(0)));
	assert_true(reserve_wait(&reserve, &three, at(0)) >= at(10));
	end(&one, 2, 2, 2);
	assert_still_waits(&three, 2);
	end(&two, 1, 3, 1);
	assert_goes(&three, 3);
	begin(RESERVE_APRIORI, 4, 10);
	assert_goes(&one, 0);
	assert_false(reserve_has_room(&reserve, &two, at(0)));
	end(&one, 1, 1, 3);
	assert_goes(&two, 1);
}

/* One that is in flight when a period begins: its time is of the new one, in which there is less room then. */
static void test_in_flight_at_replenishment(void **state)
{
	struct reserve_launch one, two;

	(void)state;
	begin(RESERVE_APRIORI, 4, 10);
	one = launch(4);
	two = launch(4);
	assert_goes(&one, 9);
	reserve_wait(&reserve, &two, at(9));
	assert_still_waits(&two, 10);
	end(&one, 4, 13, 0);
	assert_still_waits(&two, 19);
	assert_goes(&two, 20);
}

/* A long one waits; short ones that come later don't take away what it saves up. */
static void test_order(void **state)
{
	struct reserve_launch lengthy, brief;

	(void)state;
	begin(RESERVE_APRIORI, 4, 10);
	lengthy = launch(10);
	brief = launch(1);
	assert_waits(&lengthy, 0, 20);
	assert_false(reserve_has_room(&reserve, &brief, at(1)));
	uint64_t until = reserve_wait(&reserve, &brief, at(1));

	assert_still_waits(&brief, 10);
	assert_still_waits(&lengthy, 10);
	assert_still_waits(&brief, 20);
	assert_goes(&lengthy, 20);
	assert_still_waits(&brief, 20);
	end(&lengthy, 9, 29, 1);
	assert_goes(&brief, 29);
	assert_true(until >= at(29));
}

/* One that was let go without room leaves the queue; those before it keep their places. */
static void test_order_is_left(void **state)
{
	struct reserve_launch first, second, third;

	(void)state;
	begin(RESERVE_APRIORI, 4, 10);
	first = launch(10);
	second = launch(3);
	assert_waits(&first, 0, 20);
	reserve_wait(&reserve, &second, at(1));
	reserve_go(&reserve, &second, at(2));
	end(&second, 3, 5, 1);
	third = launch(1);
	assert_false(reserve_has_room(&reserve, &third, at(5)));
	assert_still_waits(&first, 10);
	assert_int_equal(reserve.left_ns, 5 * MS);
	assert_still_waits(&first, 20);
	assert_goes(&first, 30);
	assert_int_equal(reserve.left_ns, 10 * MS);
}

/* Nothing is known: it is taken to use all there is, so nobody goes beside it. */
static void test_unknown(void **state)
{
	struct reserve_launch one, two;

	(void)state;
	begin(RESERVE_POSTERIOR, 4, 10);
	one = launch(0);
	two = launch(1);
	assert_goes(&one, 0);
	assert_false(reserve_has_room(&reserve, &two, at(0)));
	end(&one, 1, 1, 3);
	assert_goes(&two, 1);
	begin(RESERVE_APRIORI, 4, 10);
	one = launch(0);
	assert_goes(&one, 0);
	assert_false(reserve_has_room(&reserve, &two, at(0)));
}

/* --- what may go wrong -------------------------------------------------------------------------------------------- */

/* Nobody looks for 1000 periods: nothing was saved up, and a debt is paid. */
static void test_nobody_looks(void **state)
{
	struct reserve_launch one, two;

	(void)state;
	for (int policy = RESERVE_POSTERIOR; policy <= RESERVE_APRIORI; policy++) {
		begin((enum reserve_policy)policy, 4, 10);
		one = launch(4);
		two = launch(4);
		assert_goes(&one, 10003);
		assert_int_equal(reserve.left_ns, 4 * MS);
		end(&one, 6, 10009, -2);
		assert_waits(&two, 10009, policy == RESERVE_POSTERIOR ? 10010 : 10020);
		assert_int_equal(reserve_next_period(&reserve, at(10009)), at(10010));
		assert_int_equal(reserve_next_period(&reserve, at(10010)), at(10020));
		assert_goes(&two, 20004);
		assert_int_equal(reserve.left_ns, 4 * MS);
	}
}

/* AE: what took longer than predicted is paid back, too. */
static void test_misprediction(void **state)
{
	struct reserve_launch one, two;

	(void)state;
	begin(RESERVE_APRIORI, 4, 10);
	one = launch(1);
	two = launch(3);
	assert_goes(&one, 0);
	end(&one, 9, 9, -5);
	assert_waits(&two, 9, 20);
	assert_still_waits(&two, 10);
	assert_goes(&two, 20);
	assert_int_equal(reserve.left_ns, 3 * MS);
}

/* Not more than the time since it went; nothing if it was not launched. */
static void test_wrong_measurement(void **state)
{
	struct reserve_launch one, two;

	(void)state;
	begin(RESERVE_POSTERIOR, 4, 10);
	one = launch(1);
	two = launch(1);
	assert_goes(&one, 0);
	end(&one, 1000000, 3, 1);
	assert_goes(&two, 4);
	end(&two, 0, 5, 1);
	assert_int_equal(reserve.used_ns, 3 * MS);
	assert_int_equal(reserve.in_flight_ns, 0);
}

/* Whoever is let go without room all the time is in debt for 10 s at most: C = 4 of 10 ms, so 4 s. One that took an hour
 * is paid back for 20 x/C periods: all of it. A short one after it neither adds to that nor forgives it. */
static void test_debt_is_bounded(void **state)
{
	struct reserve_launch one;

	(void)state;
	begin(RESERVE_POSTERIOR, 4, 10);
	for (int64_t i = 0; i < 100; i++) {
		one = launch(100);
		reserve_go(&reserve, &one, at(100 * i));
		reserve_ended(&reserve, &one, (uint64_t)(100 * MS), at(100 * (i + 1)));
	}
	assert_int_equal(reserve.left_ns, -4000 * MS);
	one = launch(3600000);
	reserve_go(&reserve, &one, at(10000));
	end(&one, 3600000, 3610000, 4 - 3600000);
	one = launch(1);
	reserve_go(&reserve, &one, at(3610001));
	end(&one, 1, 3610002, 4 - 3600000);
}

/* Another quota begins a period; what is in flight and what waits stays so. */
static void test_changes(void **state)
{
	struct reserve_launch one, two;

	(void)state;
	begin(RESERVE_POSTERIOR, 4, 10);
	one = launch(4);
	two = launch(4);
	assert_goes(&one, 0);
	assert_false(reserve_has_room(&reserve, &two, at(1)));
	reserve_wait(&reserve, &two, at(1));
	reserve_begin(&reserve, RESERVE_APRIORI, 8 * MS, 20 * MS, at(2));
	assert_goes(&two, 2);
	end(&one, 4, 5, 4);
	end(&two, 4, 9, 0);
	one = launch(8);
	assert_waits(&one, 9, 22);
	assert_goes(&one, 22);
}

/* --- random loads ------------------------------------------------------------------------------------------------- */

/* Threads that launch, on a GPU that takes one launch after the other. Times are in ticks. */
#define TICK (100 * MS / 1000)
#define THREADS 3
#define MOST 16

static struct thread {
	struct reserve_launch launch;
	bool has_launch;
	uint64_t predicted, length; /* in ns */
	uint64_t comes, until;
	uint64_t began; /* to wait; 0: it does not */
	unsigned int launches;
} threads[THREADS];

static struct {
	struct reserve_launch launches[MOST];
	uint64_t lengths[MOST], left; /* of the first one */
	unsigned int count;
} gpu;

static struct {
	uint64_t now;
	int64_t run, period;
	int64_t busy, of_period, most; /* in all, in this period, in any */
	unsigned int struck;           /* went without room */
	int64_t longest;               /* launch */
	int64_t lengths;               /* launches are up to so long */
	int error;                     /* predictions are wrong by up to so many percent */
	bool always;                   /* a thread has its next launch as soon as the last one went */
} load;

static int64_t any(int64_t least, int64_t most)
{
	return least + (int64_t)((uint64_t)random() % (uint64_t)(most - least + 1));
}

/* Nobody goes before one that came earlier, unless that one could go now, and still can then. */
static void assert_order(const struct thread *gone)
{
	for (unsigned int i = 0; i < THREADS; i++) {
		if (threads[i].began != 0 && (gone->began == 0 || threads[i].began < gone->began))
			assert_true(reserve_has_room(&reserve, &threads[i].launch, load.now));
	}
}

static void send(struct thread *thread)
{
	assert_order(thread);
	reserve_go(&reserve, &thread->launch, load.now);
	assert_order(thread);
	gpu.launches[gpu.count] = thread->launch;
	gpu.lengths[gpu.count] = thread->length;
	if (gpu.count++ == 0)
		gpu.left = thread->length;
	thread->has_launch = false;
	thread->launches++;
	thread->began = 0;
	thread->comes = load.now + (load.always ? 0 : (uint64_t)any(0, 30 * MS));
}

static void come(struct thread *thread)
{
	thread->length = (uint64_t)(any(1, load.lengths / TICK) * TICK);
	thread->predicted = thread->length * (uint64_t)(100 + any(-load.error, load.error)) / 100;
	thread->launch = reserve_launch(&reserve, thread->predicted);
	thread->has_launch = true;
	thread->until = 0;
	if ((int64_t)thread->length > load.longest)
		load.longest = (int64_t)thread->length;
}

/* What a held thread does, with the bound that it was told. */
static void ask(struct thread *thread)
{
	bool has_room = gpu.count < MOST && reserve_has_room(&reserve, &thread->launch, load.now);

	if (has_room || (thread->until != 0 && load.now >= thread->until && gpu.count < MOST)) {
		load.struck += !has_room;
		send(thread);
	} else if (thread->until == 0 && gpu.count < MOST) {
		thread->until = reserve_wait(&reserve, &thread->launch, load.now);
		thread->began = load.now;
		assert_true(thread->until > load.now);
	}
}

static void ask_all(void)
{
	unsigned int first = (unsigned int)any(0, THREADS - 1);

	for (unsigned int i = 0; i < THREADS; i++) {
		struct thread *thread = &threads[(first + i) % THREADS];

		if (!thread->has_launch && load.now >= thread->comes)
			come(thread);
		if (thread->has_launch)
			ask(thread);
	}
}

static void execute(void)
{
	if (gpu.count > 0) {
		load.busy += TICK;
		load.of_period += TICK;
		gpu.left -= (uint64_t)TICK;
	}
	if (load.of_period > load.most)
		load.most = load.of_period;
	load.now += (uint64_t)TICK;
	if (gpu.count > 0 && gpu.left == 0) {
		reserve_ended(&reserve, &gpu.launches[0], gpu.lengths[0], load.now);
		gpu.count--;
		for (unsigned int i = 0; i < gpu.count; i++) {
			gpu.launches[i] = gpu.launches[i + 1];
			gpu.lengths[i] = gpu.lengths[i + 1];
		}
		gpu.left = gpu.count > 0 ? gpu.lengths[0] : 0;
	}
	if ((load.now - BEGIN) % (uint64_t)load.period == 0)
		load.of_period = 0;
}

static void begin_load(enum reserve_policy policy, int64_t run, int64_t period, int64_t lengths)
{
	begin(policy, run, period);
	gpu.count = 0;
	load.now = BEGIN;
	load.run = run * MS;
	load.period = period * MS;
	load.lengths = lengths * MS;
	load.busy = load.of_period = load.most = load.longest = 0;
	load.struck = 0;
	load.error = 0;
	load.always = true;
	for (unsigned int i = 0; i < THREADS; i++)
		threads[i] = (struct thread){.has_launch = false};
}

/* For max(10 s, 20 x/C periods). */
static int64_t go_on(void)
{
	int64_t span = 20 * load.lengths / load.run * load.period, busy = load.busy;

	span = span < 10 * SECOND ? 10 * SECOND : span;
	for (int64_t i = 0; i < span; i += TICK) {
		ask_all();
		execute();
	}
	assert_true(load.busy - busy <= span / load.period * load.run + load.run + 2 * load.longest);
	return load.busy - busy;
}

static const int64_t quotas[][2] = {{30, 100}, {5, 20}, {90, 100}, {10, 1000}, {1, 10}, {50, 50}};
#define QUOTAS (sizeof quotas / sizeof quotas[0])

/* What is in flight at the end of a period speaks for room in the next one; so some of the quota is left, but never as
 * much as two thirds of it. Nobody is left out. */
static void assert_nobody_starves(int64_t busy)
{
	int64_t span = 20 * load.lengths / load.run * load.period;

	span = span < 10 * SECOND ? 10 * SECOND : span;
	if (3 * (busy + load.longest) < span / load.period * load.run)
		fail_msg("%lld of %lld ms", (long long)(busy / MS), (long long)(span / load.period * load.run / MS));
	for (unsigned int i = 0; i < THREADS; i++)
		assert_true(threads[i].launches >= threads[(i + 1) % THREADS].launches / 4);
}

/* Posterior: in a period, at most C and what the last one overran. */
static void test_random_posterior(void **state)
{
	(void)state;
	srandom(23);
	for (unsigned int i = 0; i < 3 * QUOTAS; i++) {
		const int64_t *quota = quotas[i % QUOTAS];

		begin_load(RESERVE_POSTERIOR, quota[0], quota[1], i < QUOTAS ? quota[0] : any(1, 2 * quota[0]));
		for (int part = 0; part < 3; part++)
			assert_nobody_starves(go_on());
		assert_true(load.most <= load.run + load.longest);
		assert_int_equal(load.struck, 0);
	}
}

/* Apriori, x <= C, and predictions are right: never more than C in a period. */
static void test_random_apriori(void **state)
{
	(void)state;
	srandom(24);
	for (unsigned int i = 0; i < 3 * QUOTAS; i++) {
		const int64_t *quota = quotas[i % QUOTAS];

		begin_load(RESERVE_APRIORI, quota[0], quota[1], i < QUOTAS ? quota[0] : any(1, quota[0]));
		load.always = i < 2 * QUOTAS;
		for (int part = 0; part < 3; part++) {
			int64_t busy = go_on();

			if (load.always)
				assert_nobody_starves(busy);
		}
		assert_true(load.most <= load.run);
		assert_int_equal(load.struck, 0);
	}
}

/* Launches that are longer than C, and than a period: the mean holds (go_on), and nobody is let go without room. */
static void test_random_long(void **state)
{
	(void)state;
	srandom(25);
	for (unsigned int i = 0; i < 4 * QUOTAS; i++) {
		const int64_t *quota = quotas[i / 2 % QUOTAS];

		begin_load(i % 2 == 0 ? RESERVE_POSTERIOR : RESERVE_APRIORI, quota[0], quota[1], any(2, 8) * quota[0]);
		assert_nobody_starves(go_on());
		assert_int_equal(load.struck, 0);
	}
}

/* Predictions that are wrong by up to 30 %: by as much more than C in a period, and the mean holds. */
static void test_random_mispredicted(void **state)
{
	(void)state;
	srandom(26);
	for (unsigned int i = 0; i < 2 * QUOTAS; i++) {
		const int64_t *quota = quotas[i % QUOTAS];

		begin_load(RESERVE_APRIORI, quota[0], quota[1], any(1, quota[0]));
		load.error = 30;
		for (int part = 0; part < 3; part++)
			assert_nobody_starves(go_on());
		assert_true(load.most <= load.run * 100 / 70 + TICK);
	}
}

/* --- what was unknown ---------------------------------------------------------------------------------------------- */

/*
 * C = 4, T = 10. Nothing is known: the first one is taken to use all of it, so the second waits for a period. When the first
 * has ended after 1, the second is known to take 1, too.
 */
static void test_known_while_waiting(void **state)
{
	struct reserve_launch one, two, three;

	(void)state;
	begin(RESERVE_APRIORI, 4, 10);
	one = launch(0);
	two = launch(0);
	assert_goes(&one, 0);
	assert_waits(&two, 0, 30);
	end(&one, 1, 1, 3);
	assert_still_waits(&two, 1);
	reserve_predict(&reserve, &two, (uint64_t)MS);
	assert_goes(&two, 1);
	/* Nothing of it is left in the queue. */
	three = launch(2);
	assert_goes(&three, 1);
}

/* --- shared by a group -------------------------------------------------------------------------------------------- */

#define MEMBERS 2
static struct budget budget;
static struct reserve members[MEMBERS];

/* Periods of a group begin at whole ones of the clock. */
static void begin_group(int64_t run, int64_t period)
{
	assert_int_equal(BEGIN % (uint64_t)(period * MS), 0);
	budget = (struct budget){.left = 0};
	for (unsigned int i = 0; i < MEMBERS; i++) {
		members[i] = (struct reserve){.left_ns = 0};
		reserve_share(&members[i], &budget);
		reserve_begin(&members[i], RESERVE_POSTERIOR, run * MS, period * MS, at(0));
	}
}

static bool goes(unsigned int member, struct reserve_launch *launch, int64_t when)
{
	bool has_room = reserve_has_room(&members[member], launch, at(when));

	if (has_room)
		reserve_go(&members[member], launch, at(when));
	return has_room;
}

/*
 * C = 4, T = 10. The first one's launch takes 3, the other's 5.
 *
 *   time   e
 *    0     4     the first one's goes, and so does the other's: neither knows of the other's before it has ended
 *    3     1     the first one's has ended
 *    5    -4     the other's has ended; both wait
 *   10     0     e = min(C, e + C); both wait
 *   20     4     both go
 */
static void test_shared(void **state)
{
	struct reserve_launch one, two, waits[MEMBERS];

	(void)state;
	begin_group(4, 10);
	one = reserve_launch(&members[0], 3 * MS);
	two = reserve_launch(&members[1], 5 * MS);
	assert_true(goes(0, &one, 0));
	assert_true(goes(1, &two, 0));
	reserve_ended(&members[0], &one, 3 * MS, at(3));
	reserve_ended(&members[1], &two, 5 * MS, at(5));
	assert_in_range(members[1].left_ns + 4 * MS, 0, 128);
	for (unsigned int i = 0; i < MEMBERS; i++) {
		waits[i] = reserve_launch(&members[i], MS);
		assert_false(goes(i, &waits[i], 5));
		assert_int_equal(reserve_wait(&members[i], &waits[i], at(5)), at(20));
	}
	for (unsigned int i = 0; i < MEMBERS; i++)
		assert_false(goes(i, &waits[i], 10));
	for (unsigned int i = 0; i < MEMBERS; i++)
		assert_true(goes(i, &waits[i], 20));
}

/* What is left lapses for all. */
static void test_shared_lapses(void **state)
{
	struct reserve_launch launch;

	(void)state;
	begin_group(4, 10);
	launch = reserve_launch(&members[0], MS);
	assert_true(goes(0, &launch, 95));
	reserve_ended(&members[0], &launch, MS, at(96));
	assert_in_range(members[0].left_ns - 3 * MS + 64, 0, 128);
}

/* Whatever a member writes, nobody has more than C, and debts end. */
static void test_shared_nonsense(void **state)
{
	const uint64_t words[] = {0, 1, UINT64_MAX, INT64_MAX, UINT64_C(1) << 63, UINT32_MAX, UINT64_C(0x7fffffff), UINT64_C(0x80000000),
	                          at(0) / (10 * MS) << 32 | 0x7fffffff, at(0) / (10 * MS) << 32 | 0x80000000, UINT64_C(2) << 32};
	const int64_t runs[] = {4, 4000}, periods[] = {10, 5000};

	(void)state;
	for (size_t i = 0; i < 2 * sizeof words / sizeof words[0]; i++) {
		struct reserve_launch launch;

		begin_group(runs[i % 2], periods[i % 2]);
		budget.left = words[i / 2];
		launch = reserve_launch(&members[0], MS);
		reserve_has_room(&members[0], &launch, at(1));
		assert_true(members[0].left_ns <= runs[i % 2] * MS && members[0].left_ns >= -10 * SECOND);
		assert_true(reserve_has_room(&members[0], &launch, at(40000)));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_posterior),
		cmocka_unit_test(test_forgotten),
		cmocka_unit_test(test_apriori),
		cmocka_unit_test(test_posterior_long),
		cmocka_unit_test(test_apriori_long),
		cmocka_unit_test(test_apriori_over_periods),
		cmocka_unit_test(test_in_flight),
		cmocka_unit_test(test_in_flight_at_replenishment),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_order_is_left),
		cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_nobody_looks),
		cmocka_unit_test(test_misprediction),
		cmocka_unit_test(test_wrong_measurement),
		cmocka_unit_test(test_debt_is_bounded),
		cmocka_unit_test(test_changes),
		cmocka_unit_test(test_random_posterior),
		cmocka_unit_test(test_random_apriori),
		cmocka_unit_test(test_random_long),
		cmocka_unit_test(test_random_mispredicted),
		cmocka_unit_test(test_known_while_waiting),
		cmocka_unit_test(test_shared),
		cmocka_unit_test(test_shared_lapses),
		cmocka_unit_test(test_shared_nonsense),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
