/*
 * The rules of a quota, on a clock of this file's own: a GPU that takes its time to put a program aside and to take it back,
 * and programs that want to run always, never or now and then. What they got is what the GPU did, not what the rules think.
 */
#include "shim/quota.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <string.h>

#define US INT64_C(1000)
#define MS (1000 * US)
#define SECOND (1000 * MS)

/* As on an H100 with one context (docs/facts.md, "Time slices"). */
#define ASIDE_CALL (470 * US)
#define ASIDE_EFFECT (275 * US)
#define BACK_CALL (260 * US)

static struct {
	struct quota rules;
	uint64_t now;
	bool is_stopped; /* by the GPU */
	bool (*wants)(uint64_t now);
	int64_t present;      /* in all */
	int64_t of_period;    /* since `period` */
	int64_t most;         /* of a period */
	uint64_t period;
	int64_t period_ns;
	unsigned int asides, backs;
	int64_t aside_call, aside_effect, late; /* how late our thread wakes up */
	bool is_unsteady; /* every other time, putting aside takes a fifth of that */
} world;

/* The clock goes on, in steps in which a program's wish does not change. */
static void pass(int64_t ns)
{
	const int64_t step = 10 * US;

	for (int64_t passed = 0; passed < ns; passed += step) {
		int64_t part = ns - passed < step ? ns - passed : step;

		if (world.now >= world.period + (uint64_t)world.period_ns) {
			world.period += (uint64_t)world.period_ns;
			world.of_period = 0;
		}
		if (!world.is_stopped && world.wants(world.now)) {
			world.present += part;
			world.of_period += part;
		}
		if (world.of_period > world.most)
			world.most = world.of_period;
		world.now += (uint64_t)part;
	}
}

static void put_aside(void)
{
	uint64_t begin = world.now;
	int64_t part = world.is_unsteady && world.asides % 2 == 1 ? 5 : 1;

	pass(world.aside_effect / part);
	world.is_stopped = true;
	pass((world.aside_call - world.aside_effect) / part);
	quota_was_put_aside(&world.rules, begin, world.now);
	world.asides++;
}

static void take_back(void)
{
	pass(BACK_CALL);
	world.is_stopped = false;
	quota_was_taken_back(&world.rules, world.now);
	world.backs++;
}

/* What our thread does, for so long. */
static void go_on(int64_t ns)
{
	uint64_t end = world.now + (uint64_t)ns, wake;

	while (world.now < end) {
		bool aside = quota_step(&world.rules, world.now, world.wants(world.now), &wake);

		if (aside && !world.is_stopped)
			put_aside();
		else if (!aside && world.is_stopped)
			take_back();
		else
			pass(wake > world.now ? (int64_t)(wake - world.now) + world.late : world.late + US);
	}
}

static void begin(int64_t run_ns, int64_t period_ns, bool (*wants)(uint64_t now))
{
	world.now = 5 * SECOND;
	world.rules = (struct quota){.lag_ns = 0};
	world.is_stopped = false;
	world.wants = wants;
	world.present = world.of_period = world.most = 0;
	world.period = world.now;
	world.period_ns = period_ns;
	world.asides = world.backs = 0;
	world.aside_call = ASIDE_CALL;
	world.aside_effect = ASIDE_EFFECT;
	world.late = 20 * US;
	world.is_unsteady = false;
	quota_begin(&world.rules, run_ns, period_ns, NULL, world.now);
}

static bool always(uint64_t now)
{
	(void)now;
	return true;
}

static bool never(uint64_t now)
{
	(void)now;
	return false;
}

/* 10 ms of every 50. */
static bool now_and_then(uint64_t now)
{
	return now % (50 * MS) < 10 * MS;
}

/* Of every second only the second half. */
static bool late_riser(uint64_t now)
{
	return now % SECOND >= SECOND / 2;
}

/* In percent, to two digits, of so long. */
static void assert_share(int64_t present, int64_t of, int64_t run_ns, int64_t period_ns, int64_t tolerance)
{
	int64_t share = present * 10000 / of, wanted = run_ns * 10000 / period_ns;

	if (share < wanted - tolerance || share > wanted + tolerance)
		fail_msg("present for %lld of 10000, wanted %lld", (long long)share, (long long)wanted);
}

/* --- a program that always wants to run --------------------------------------------------------------------------------- */

static void check_share(int64_t run_ns, int64_t period_ns)
{
	begin(run_ns, period_ns, always);
	go_on(10 * SECOND);
	assert_share(world.present, 10 * SECOND, run_ns, period_ns, 30);
	/* The first period is whole; in the others it is back by the time that this takes. */
	assert_true(world.most <= run_ns + 100 * US);
	assert_in_range(world.asides, 10 * SECOND / period_ns - 1, 10 * SECOND / period_ns + 1);
}

static void test_shares(void **state)
{
	(void)state;
	check_share(30 * MS, 100 * MS);
	check_share(50 * MS, 100 * MS);
	check_share(5 * MS, 20 * MS);
	check_share(10 * MS, 1000 * MS);
	check_share(95 * MS, 100 * MS);
	check_share(1 * MS, 10 * MS);
}

/* What the rules think is what the GPU did. */
static void test_books(void **state)
{
	(void)state;
	begin(30 * MS, 100 * MS, always);
	go_on(10 * SECOND);
	assert_in_range(world.rules.present_ns, world.present - 20 * MS, world.present + 20 * MS);
	assert_in_range(world.rules.present_ns + world.rules.aside_ns, 10 * SECOND - 100 * MS, 10 * SECOND + 100 * MS);
}

/* Ten contexts: putting aside takes three times as long. The rules learn that. */
static void test_slow_calls(void **state)
{
	(void)state;
	begin(30 * MS, 100 * MS, always);
	world.aside_call = 5 * MS;
	world.aside_effect = 3 * MS;
	go_on(10 * SECOND);
	assert_share(world.present, 10 * SECOND, 30 * MS, 100 * MS, 30);
}

/* --- programs that do not ----------------------------------------------------------------------------------------------- */

static void test_idle(void **state)
{
	(void)state;
	begin(1 * MS, 100 * MS, never);
	go_on(10 * SECOND);
	assert_int_equal(world.asides, 0);
	assert_int_equal(world.rules.present_ns, 0);
}

static void test_within_its_quota(void **state)
{
	(void)state;
	begin(30 * MS, 100 * MS, now_and_then);
	go_on(10 * SECOND);
	assert_int_equal(world.asides, 0);
	assert_share((int64_t)world.rules.present_ns, 10 * SECOND, 20 * MS, 100 * MS, 200);
}

/* What it did not use for half a second it does not have afterwards. */
static void test_saves_nothing(void **state)
{
	(void)state;
	begin(30 * MS, 100 * MS, late_riser);
	go_on(10 * SECOND);
	assert_true(world.most <= 30 * MS + 26 * MS); /* it is noticed within a quarter of a period, and paid back */
	assert_share(world.present, 10 * SECOND, 15 * MS, 100 * MS, 50);
}

/* --- our thread does not run ---------------------------------------------------------------------------------------------- */

static void test_starved(void **state)
{
	(void)state;
	begin(30 * MS, 100 * MS, always);
	go_on(10 * MS);
	pass(2550 * MS);
	world.present = 0;
	go_on(200 * MS);
	/* It pays back one RUN and no more. */
	assert_true(world.present < 35 * MS);
	world.present = 0;
	go_on(1000 * MS);
	assert_share(world.present, 1000 * MS, 30 * MS, 100 * MS, 301);
}

/* It was put aside when our thread stopped: it runs as soon as that goes on. */
static void test_starved_while_aside(void **state)
{
	(void)state;
	begin(30 * MS, 100 * MS, always);
	go_on(50 * MS);
	assert_true(world.is_stopped);
	pass(3000 * MS);
	unsigned int backs = world.backs;

	go_on(2 * MS);
	assert_int_equal(world.backs, backs + 1);
	assert_false(world.is_stopped);
}

static void test_always_late(void **state)
{
	(void)state;
	begin(30 * MS, 100 * MS, always);
	world.late = 3 * MS;
	go_on(10 * SECOND);
	assert_share(world.present, 10 * SECOND, 30 * MS, 100 * MS, 100);
}

/* --- another quota ---------------------------------------------------------------------------------------------------------- */

static void test_changes(void **state)
{
	(void)state;
	begin(30 * MS, 100 * MS, always);
	go_on(1 * SECOND);
	world.present = 0;
	quota_begin(&world.rules, 50 * MS, 100 * MS, NULL, world.now);
	world.period = world.now;
	go_on(5 * SECOND);
	assert_share(world.present, 5 * SECOND, 50 * MS, 100 * MS, 30);
}

/* --- a group ---------------------------------------------------------------------------------------------------------------- */

/* Members of a group on one GPU: putting aside takes no time here. */
#define MEMBERS 3

static struct budget budget;
static struct member {
	struct quota rules;
	uint64_t wake; /* UINT64_MAX: it has died */
	bool is_stopped;
	bool (*wants)(uint64_t now);
	int64_t present;
} members[MEMBERS];
static int64_t group_present; /* at least one of them */

static void begin_group(bool (*first)(uint64_t), bool (*second)(uint64_t), bool (*third)(uint64_t))
{
	bool (*const wants[MEMBERS])(uint64_t now) = {first, second, third};

	world.now = 5 * SECOND + 7 * MS;
	memset(&budget, 0, sizeof budget);
	for (unsigned int i = 0; i < MEMBERS; i++) {
		members[i] = (struct member){.wants = wants[i], .wake = world.now + i * 300 * US};
		quota_begin(&members[i].rules, 30 * MS, 100 * MS, &budget, world.now);
	}
}

static void act(struct member *member)
{
	bool aside = quota_step(&member->rules, world.now, member->wants(world.now), &member->wake);

	if (aside != member->is_stopped)
		member->wake = world.now;
	if (aside && !member->is_stopped)
		quota_was_put_aside(&member->rules, world.now, world.now);
	else if (!aside && member->is_stopped)
		quota_was_taken_back(&member->rules, world.now);
	member->is_stopped = aside;
}

static void go_on_together(int64_t ns)
{
	const int64_t step = 10 * US;

	group_present = 0;
	for (int64_t passed = 0; passed < ns; passed += step) {
		bool any = false;

		for (unsigned int i = 0; i < MEMBERS; i++) {
			bool runs = !members[i].is_stopped && members[i].wants(world.now);

			members[i].present += runs ? step : 0;
			any = any || runs;
		}
		group_present += any ? step : 0;
		world.now += (uint64_t)step;
		for (unsigned int i = 0; i < MEMBERS; i++) {
			if (world.now >= members[i].wake)
				act(&members[i]);
		}
	}
}

static void check_group(int64_t tolerance)
{
	go_on_together(1 * SECOND);
	go_on_together(10 * SECOND);
	assert_share(group_present, 10 * SECOND, 30 * MS, 100 * MS, tolerance);
}

static void test_group_is_one(void **state)
{
	(void)state;
	begin_group(always, always, always);
	check_group(30);
	for (unsigned int i = 0; i < MEMBERS; i++)
		assert_share(members[i].present, 11 * SECOND, 30 * MS, 100 * MS, 100);
	begin_group(always, never, never);
	check_group(30);
	assert_int_equal(members[1].present, 0);
}

/* With calls that take their time, and a thread that is late: what was overdrawn is paid back, and who was put aside stays so
 * until the next period, also if the GPU was faster than expected. */
static void check_member(int64_t run_ns, int64_t period_ns, int64_t late, bool is_unsteady, int64_t tolerance)
{
	begin(run_ns, period_ns, always);
	world.is_unsteady = is_unsteady;
	memset(&budget, 0, sizeof budget);
	quota_begin(&world.rules, run_ns, period_ns, &budget, world.now);
	world.late = late;
	go_on(10 * SECOND);
	assert_share(world.present, 10 * SECOND, run_ns, period_ns, tolerance);
	assert_in_range(world.asides, 10 * SECOND / period_ns - 2, 10 * SECOND / period_ns + 1);
}

static void test_group_of_one(void **state)
{
	(void)state;
	check_member(30 * MS, 100 * MS, 20 * US, false, 30);
	check_member(30 * MS, 100 * MS, 20 * US, true, 30);
	check_member(5 * MS, 20 * MS, 20 * US, false, 30);
	check_member(10 * MS, 1000 * MS, 20 * US, false, 30);
	check_member(30 * MS, 100 * MS, 3 * MS, false, 100);
}

/* 3 of every 7 slots, each at another time; looks do not keep step with them. */
#define SLOT (1370 * US)
static bool third_of_three(uint64_t now, uint64_t number)
{
	return (now / SLOT + 2 * number) % 7 < 3;
}

static bool first_of_three(uint64_t now)
{
	return third_of_three(now, 0);
}

static bool second_of_three(uint64_t now)
{
	return third_of_three(now, 1);
}

static void test_group_takes_turns(void **state)
{
	(void)state;
	begin_group(first_of_three, second_of_three, now_and_then);
	check_group(100);
	begin_group(late_riser, now_and_then, never);
	go_on_together(11 * SECOND);
	assert_true(group_present <= 30 * 11 * SECOND / 100);
}

/* In the middle of a period, present or aside. */
static void test_group_loses_members(void **state)
{
	(void)state;
	begin_group(always, always, always);
	go_on_together(1015 * MS);
	members[0].wake = UINT64_MAX;
	members[0].is_stopped = true;
	go_on_together(50 * MS);
	members[1].wake = UINT64_MAX;
	members[1].is_stopped = true;
	check_group(30);
}

/* Whatever stands there, the next periods are as ever. */
static void test_group_with_nonsense(void **state)
{
	const uint64_t words[] = {0, 1, UINT32_MAX, UINT64_MAX, INT64_MAX, UINT64_C(1) << 63, UINT64_C(0x8000000080000000)};

	(void)state;
	for (unsigned int i = 0; i < sizeof words / sizeof words[0]; i++) {
		begin_group(always, always, never);
		go_on_together(1 * SECOND);
		budget.allowance = words[i];
		for (unsigned int j = 0; j < sizeof budget.slots / sizeof budget.slots[0][0]; j++)
			budget.slots[j % 2][j / 2] = words[(i + j) % (sizeof words / sizeof words[0])];
		check_group(30);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shares),
		cmocka_unit_test(test_books),
		cmocka_unit_test(test_slow_calls),
		cmocka_unit_test(test_idle),
		cmocka_unit_test(test_within_its_quota),
		cmocka_unit_test(test_saves_nothing),
		cmocka_unit_test(test_starved),
		cmocka_unit_test(test_starved_while_aside),
		cmocka_unit_test(test_always_late),
		cmocka_unit_test(test_changes),
		cmocka_unit_test(test_group_is_one),
		cmocka_unit_test(test_group_of_one),
		cmocka_unit_test(test_group_takes_turns),
		cmocka_unit_test(test_group_loses_members),
		cmocka_unit_test(test_group_with_nonsense),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
