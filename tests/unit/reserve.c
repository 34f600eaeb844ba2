/*
 * Whether there is room for a launch, on a clock of this file's own. The timelines are worked out by hand from TimeGraph
 * (Kato et al., USENIX ATC 2011, 5.1 and figure 6); random loads run on a GPU that executes one launch after the other.
 */
#include "../cases.h"
#include "time/gate/reserve.h"

#define MS INT64_C(1000000)
#define SECOND (1000 * MS)
#define BEGIN ((uint64_t)(5 * SECOND))

static struct reserve reserve;

/* Times are in ms from the begin. */
static uint64_t at(int64_t ms)
{
	return BEGIN + (uint64_t)(ms * MS);
}

static void begin(int64_t run, int64_t period)
{
	reserve = (struct reserve){.left_ns = 0};
	reserve_begin(&reserve, run * MS, period * MS, at(0));
}

/* As if the longest of late had used so much; 0: none has ended. */
static struct reserve_launch launch_in(struct reserve *of, int64_t longest_ns)
{
	of->longest_ns = longest_ns;
	return reserve_launch(of);
}

static struct reserve_launch launch(int64_t longest)
{
	return launch_in(&reserve, longest * MS);
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
TEST(posterior)
{
	struct reserve_launch one = {0}, two = {0}, three = {0}, four = {0}, five = {0};

	begin(4, 10);
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
TEST(forgotten)
{
	struct reserve_launch one = {0}, two = {0}, three = {0}, four = {0};

	begin(4, 10);
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

/* --- what may go wrong -------------------------------------------------------------------------------------------- */

/* Whoever is let go without room all the time is in debt for 10 s at most: C = 4 of 10 ms, so 4 s. One that took an hour
 * is paid back for 20 x/C periods: all of it. A short one after it neither adds to that nor forgives it. */
TEST(debt_is_bounded)
{
	struct reserve_launch one;

	begin(4, 10);
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

/* Whenever quotas are given, those with the same period begin it together: so programs that wait for each other go on. */
TEST(phase)
{
	struct reserve late = {.left_ns = 0};

	begin(30, 100);
	reserve_begin(&late, 30 * MS, 100 * MS, at(37));
	assert_int_equal(reserve_next_period(&late, at(40)), reserve_next_period(&reserve, at(40)));
}

/* --- random loads ------------------------------------------------------------------------------------------------- */

/* Threads that launch, on a GPU that takes one launch after the other. Times are in ticks. */
#define TICK (100 * MS / 1000)
#define THREADS 3
#define MOST 16

static struct thread {
	struct reserve_launch launch;
	bool has_launch;
	uint64_t length; /* in ns */
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
	int64_t lengths;               /* launches are up to so long, */
	bool is_steady;                /* or all of them are */
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
	thread->comes = load.now;
}

static void come(struct thread *thread)
{
	thread->length = (uint64_t)(load.is_steady ? load.lengths : any(1, load.lengths / TICK) * TICK);
	thread->launch = reserve_launch(&reserve);
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

static void begin_load(int64_t run, int64_t period, int64_t lengths)
{
	begin(run, period);
	gpu.count = 0;
	load.now = BEGIN;
	load.run = run * MS;
	load.period = period * MS;
	load.lengths = lengths * MS;
	load.busy = load.of_period = load.most = load.longest = 0;
	load.struck = 0;
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

/* Launches that are all as long as the longest of late: in a period, at most C and what the last one overran, and nobody is let go without
 * room. Where lengths differ, more may overrun, and the mean holds (go_on). */
TEST(random)
{
	srandom(23);
	for (unsigned int i = 0; i < 6 * QUOTAS; i++) {
		const int64_t *quota = quotas[i % QUOTAS];

		begin_load(quota[0], quota[1], any(1, 4 * quota[0]));
		load.is_steady = i < 3 * QUOTAS;
		reserve.longest_ns = load.is_steady ? load.lengths : 0;
		for (int part = 0; part < 3; part++)
			assert_nobody_starves(go_on());
		if (load.is_steady) {
			assert_true(load.most <= load.run + load.longest);
			assert_int_equal(load.struck, 0);
		}
	}
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
		reserve_begin(&members[i], run * MS, period * MS, at(0));
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
TEST(shared)
{
	struct reserve_launch one, two, waits[MEMBERS];

	begin_group(4, 10);
	one = launch_in(&members[0], 3 * MS);
	two = launch_in(&members[1], 5 * MS);
	assert_true(goes(0, &one, 0));
	assert_true(goes(1, &two, 0));
	reserve_ended(&members[0], &one, 3 * MS, at(3));
	reserve_ended(&members[1], &two, 5 * MS, at(5));
	assert_in_range(members[1].left_ns + 4 * MS, 0, 128);
	for (unsigned int i = 0; i < MEMBERS; i++) {
		waits[i] = launch_in(&members[i], MS);
		assert_false(goes(i, &waits[i], 5));
		assert_int_equal(reserve_wait(&members[i], &waits[i], at(5)), at(20));
	}
	for (unsigned int i = 0; i < MEMBERS; i++)
		assert_false(goes(i, &waits[i], 10));
	for (unsigned int i = 0; i < MEMBERS; i++)
		assert_true(goes(i, &waits[i], 20));
}

/* Whatever a member writes, nobody has more than C, and debts end. */
TEST(shared_nonsense)
{
	const uint64_t words[] = {0, 1, UINT64_MAX, INT64_MAX, UINT64_C(1) << 63, UINT32_MAX, UINT64_C(0x7fffffff), UINT64_C(0x80000000),
	                          at(0) / (10 * MS) << 32 | 0x7fffffff, at(0) / (10 * MS) << 32 | 0x80000000, UINT64_C(2) << 32};
	const int64_t runs[] = {4, 4000}, periods[] = {10, 5000};

	for (size_t i = 0; i < 2 * sizeof words / sizeof words[0]; i++) {
		struct reserve_launch launch;

		begin_group(runs[i % 2], periods[i % 2]);
		budget.left = words[i / 2];
		launch = launch_in(&members[0], MS);
		reserve_has_room(&members[0], &launch, at(1));
		assert_true(members[0].left_ns <= runs[i % 2] * MS && members[0].left_ns >= -10 * SECOND);
		assert_true(reserve_has_room(&members[0], &launch, at(40000)));
	}
}

RUN_TESTS(NULL, NULL)
