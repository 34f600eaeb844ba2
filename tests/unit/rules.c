/*
 * The rules of time on a model of a GPU: programs take turns, a change from one to another that both fill the GPU costs 190 us of
 * kernels, and suspending and resuming take as long as on the hardware (facts.md, "Time slices"). Time is the model's.
 *
 * A graph is a kernel here: it takes as long as its kernels, and the GPU does not change between them. With that, a picture of
 * ResNet-152 takes as long as on an H100 where its time slice ends in the middle of it (docs/evaluation/time.md).
 */
#include "../cases.h"
#include "base/extremes.h"
#include "time/demand/work.h"
#include "time/rules/rules.h"

#define US UINT64_C(1000)
#define MS (1000 * US)
#define SECOND (1000 * MS)
#define STEP (5 * US)

#define CHANGE (190 * US)
#define SUSPEND_CALL (470 * US)
#define SUSPEND_LAG (SUSPEND_CALL * 3 / 5)
#define RESUME_CALL (260 * US)
#define LATE (150 * US) /* a thread wakes by so much later, at most */
#define SLICE (2048 * US)
#define UNEVEN (40 * US) /* a slice is shorter or longer by so much, at most: with equal ones, two programs fall into step */

#define PROGRAMS 9

/* --- programs ----------------------------------------------------------------------------------------------------------- */

static struct program {
	/* What it does: kernels of this length with gaps; `burst` of them, and then nothing until the next period. Without a gap, the
	 * next one is always in flight. */
	uint64_t kernel, gap, period;
	unsigned int burst;
	/* What it was given. */
	unsigned int priority, weight, group;
	/* What it has in flight. */
	uint64_t left, ready, launched, ended;
	unsigned int done;
	/* What came of it. */
	uint64_t worked, answers, answered, longest, bursts, in_bursts, suspensions;
	/* What its thread knows. */
	struct rules rules;
	struct demand_seen {
		uint64_t numbers, idle_since, paused;
		uint8_t history;
	} seen[PROGRAMS];
	struct suspension suspension;
	uint64_t call, wakes, slice;
} programs[PROGRAMS];
static unsigned int count;
static struct budget budgets[PROGRAMS];

static uint64_t now;
static unsigned int running;
static uint64_t slice_ends, change_ends;

static void begin(void)
{
	memset(programs, 0, sizeof programs);
	memset(budgets, 0, sizeof budgets);
	count = running = 0;
	now = 5 * SECOND;
	slice_ends = change_ends = 0;
	random_state = 1;
}

static struct program *add(struct program program)
{
	struct program *added = &programs[count];
	const struct segment_revision revision = {
		.rank = {.priority = (uint16_t)(program.priority + 1), .weight = (uint16_t)program.weight},
	};

	*added = program;
	added->ready = added->wakes = now + count * 370 * US;
	added->group = program.group != 0 ? program.group - 1 : count;
	rules_use(&added->rules, &revision, &budgets[count], &budgets[added->group].served, now);
	count++;
	return added;
}

/* --- the GPU ------------------------------------------------------------------------------------------------------------ */

static bool wants(const struct program *program)
{
	return program->left > 0;
}

static bool runs(const struct program *program)
{
	return wants(program) && !(program->suspension.is_on && now >= program->suspension.since);
}

static void launch(struct program *program)
{
	if (!wants(program) && now >= program->ready) {
		program->left = program->kernel;
		program->launched++;
		program->ready = now;
	}
}

static void end_kernel(struct program *program)
{
	uint64_t begun = program->ready;

	program->ended++;
	program->answers++;
	program->answered += now - begun;
	program->longest = now - begun > program->longest ? now - begun : program->longest;
	program->ready = now + program->gap;
	program->done++;
	if (program->burst > 0 && program->done % program->burst == 0) {
		program->bursts++;
		program->in_bursts += now % program->period;
		program->ready = (now / program->period + 1) * program->period;
	}
	launch(program);
}

static unsigned int after(unsigned int number)
{
	return number + 1 < count ? number + 1 : 0;
}

static void go_on(void)
{
	unsigned int next = after(running);

	while (next != running && !runs(&programs[next]))
		next = after(next);
	if (!runs(&programs[next]))
		return;
	change_ends = next != running ? now + CHANGE : now;
	running = next;
	slice_ends = change_ends + (programs[running].slice > 0 ? programs[running].slice : SLICE - UNEVEN + some_below(2 * UNEVEN));
}

static void work_gpu(void)
{
	if (now < change_ends)
		return;
	if (!runs(&programs[running]) || now >= slice_ends)
		go_on();
	if (now < change_ends || !runs(&programs[running]))
		return;
	programs[running].worked += STEP;
	programs[running].left -= programs[running].left < STEP ? programs[running].left : STEP;
	if (programs[running].left == 0)
		end_kernel(&programs[running]);
}

/* --- their threads ------------------------------------------------------------------------------------------------------ */

static void see(struct demand_seen *seen, const struct program *program)
{
	uint64_t numbers = program->launched + program->ended;

	if (wants(program) || numbers != seen->numbers)
		seen->idle_since = now;
	if (!wants(program) || seen->paused == 0)
		seen->paused = now;
	seen->numbers = numbers;
	seen->history = (uint8_t)(seen->history << 1 | wants(program));
}

static bool pauses(const struct demand_seen *seen)
{
	return now - seen->paused < DEMAND_GAPS_NS;
}

static struct rivals rivals_of(struct program *self)
{
	struct rivals rivals = rivals_none;

	for (unsigned int i = 0; i < count; i++) {
		struct program *other = &programs[i];
		struct demand_seen *seen = &self->seen[i];
		bool is_present = (wants(other) || (seen->history & 7)) && !other->suspension.is_on;

		see(seen, other);
		if (other == self)
			continue;
		rivals.any = true;
		if (other->priority > self->priority) {
			rivals.has_higher = true;
			rivals.higher_wanting += wants(other);
			rivals.higher_idle_ns = min_u64(rivals.higher_idle_ns, now - seen->idle_since);
		} else if (other->priority == self->priority) {
			uint64_t served = weight_served(&other->rules.weight);

			rivals.equals_present += is_present;
			rivals.equals_wanting += wants(other);
			rivals.equals_pause = rivals.equals_pause || (is_present && pauses(&other->seen[i]));
			if (other->group == self->group)
				rivals.group_is_present = rivals.group_is_present || is_present;
			else if (is_present && served > 0)
				rivals.least_served_ns = min_u64(rivals.least_served_ns, served);
		}
		rivals.has_lower = rivals.has_lower || other->priority < self->priority;
		rivals.lower_wanting += other->priority <= self->priority && wants(other);
	}
	return rivals;
}

static void look(struct program *self)
{
	struct rivals rivals = rivals_of(self);
	const struct demand_seen *own = &self->seen[self - programs];
	const struct rules_view view = {.wants = wants(self), .pauses = pauses(own), .gpus_wanting = wants(self),
	                                .is_present = wants(self) || (own->history & 7)};
	struct rules_verdict verdict = rules_ask(&self->rules, now, &view, &self->suspension, &rivals);

	self->slice = verdict.slice_us * US;
	self->wakes = min_u64(verdict.until, now + MS) + some_below(LATE);
	if (verdict.suspends != self->suspension.is_on) {
		self->call = now + (verdict.suspends ? SUSPEND_CALL : RESUME_CALL);
		self->suspensions += verdict.suspends;
		self->suspension = verdict.suspends ? (struct suspension){true, now + SUSPEND_LAG} : (struct suspension){false, self->call};
	}
}

static void run(uint64_t for_ns)
{
	uint64_t end = now + for_ns;

	for (; now < end; now += STEP) {
		for (unsigned int i = 0; i < count; i++)
			launch(&programs[i]);
		work_gpu();
		for (unsigned int i = 0; i < count; i++) {
			if (now >= programs[i].call && now >= programs[i].wakes)
				look(&programs[i]);
		}
	}
}

static uint64_t permille(uint64_t part, uint64_t whole)
{
	return whole > 0 ? part * 1000 / whole : 0;
}

#define RUN_NS (20 * SECOND)
#define LOOP ((struct program){.kernel = 20 * MS, .priority = 20, .weight = 100})

static struct program *const higher = &programs[0], *const loop = &programs[1];

/* What the higher one does, beside a loop. */
static void run_beside_loop(struct program program)
{
	begin();
	program.priority = 80;
	program.weight = 100;
	add(program);
	add(LOOP);
	run(SECOND);
	higher->longest = higher->worked = loop->worked = 0;
	run(RUN_NS);
}

/* --- priority ----------------------------------------------------------------------------------------------------------- */

/* Busy 50 of 200 ms with kernels of 0.5 ms and gaps that are worth nothing. */
TEST(bursts)
{
	run_beside_loop((struct program){.kernel = 500 * US, .gap = 100 * US, .burst = 83, .period = 200 * MS});
	assert_in_range(higher->bursts, 95, 106);
	assert_in_range(permille(83 * 600 * US - 100 * US, higher->in_bursts / higher->bursts), 950, 1000);
	assert_in_range(permille(loop->worked, RUN_NS), 650, 800);
}

/* A program without pauses has the GPU, but for the turns of the lower one. */
TEST(without_pauses)
{
	run_beside_loop((struct program){.kernel = 1020 * US, .gap = 5 * US});
	assert_in_range(permille(higher->worked, RUN_NS), 975, 1000);
	assert_in_range(permille(loop->worked, RUN_NS), 2, 15);
}

/* Pauses of 0.3 ms are worth a change: they are the lower one's. */
TEST(pauses_between_steps)
{
	run_beside_loop((struct program){.kernel = 1020 * US, .gap = 300 * US});
	assert_in_range(higher->answered / higher->answers, 1000 * US, 1270 * US);
	assert_in_range(permille(loop->worked, RUN_NS), 50, 250);
	assert_in_range(loop->suspensions, 0, 400);
}

/* A moment of the host's now and then is no reason to go on: each would cost the higher one many steps. */
TEST(a_gap_now_and_then)
{
	run_beside_loop((struct program){.kernel = 1020 * US, .gap = 5 * US, .burst = 100, .period = 400 * US});
	assert_in_range(permille(higher->worked, RUN_NS), 965, 1000);
}

/* A kernel of 10 us each 2 ms costs the lower one two changes, and waits for one. */
TEST(short_kernels)
{
	run_beside_loop((struct program){.kernel = 10 * US, .burst = 1, .period = 2 * MS});
	assert_in_range(higher->longest, 0, 260 * US);
	assert_in_range(permille(loop->worked, RUN_NS), 800, 810);
	assert_int_equal(loop->suspensions, 0);
}

/* Pictures each 10 ms. One of 2.1 ms, which takes longer than a usual time slice, waits for one change alone. */
TEST(pictures)
{
	static const struct {
		uint64_t work, most, least_kept;
	} rows[] = {{2130 * US, 2350 * US, 740}, {3800 * US, 4020 * US, 570}, {5600 * US, 6250 * US, 170}};

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		ROW("%llu us", (unsigned long long)(rows[i].work / US));
		run_beside_loop((struct program){.kernel = rows[i].work, .burst = 1, .period = 10 * MS});
		assert_in_range(higher->answered / higher->answers, rows[i].work, rows[i].most);
		assert_in_range(permille(loop->worked, RUN_NS), rows[i].least_kept, 1000);
	}
}

/* Eight lower ones have no more than one. */
TEST(lower_ones_that_split)
{
	uint64_t lower = 0;

	begin();
	add((struct program){.kernel = 1020 * US, .gap = 5 * US, .priority = 80, .weight = 100});
	for (int i = 0; i < 8; i++)
		add(LOOP);
	run(RUN_NS);
	for (unsigned int i = 1; i < count; i++) {
		assert_true(programs[i].worked > 0);
		lower += programs[i].worked;
	}
	assert_in_range(permille(higher->worked, RUN_NS), 940, 1000);
	assert_in_range(permille(lower, RUN_NS), 2, 40);
}

/* --- weight ------------------------------------------------------------------------------------------------------------- */

static void add_weighted(unsigned int weight, unsigned int group)
{
	add((struct program){.kernel = 500 * US, .priority = 50, .weight = weight, .group = group});
}

/* Of the time that all of them got, in millionths. */
static uint64_t share_of(unsigned int number)
{
	uint64_t all = 0;

	for (unsigned int i = 0; i < count; i++)
		all += programs[i].worked;
	return permille(programs[number].worked * 1000, all);
}

static void weigh(const unsigned int weights[3])
{
	uint64_t used = 0, all = weights[0] + weights[1] + weights[2];

	begin();
	for (int i = 0; i < 3 && weights[i] > 0; i++)
		add_weighted(weights[i], 0);
	run(SECOND);
	for (unsigned int i = 0; i < count; i++)
		programs[i].worked = 0;
	run(5 * RUN_NS);
	for (unsigned int i = 0; i < count; i++) {
		used += programs[i].worked;
		assert_in_range(share_of(i) * all, weights[i] * UINT64_C(950000), weights[i] * UINT64_C(1050000));
	}
	assert_in_range(permille(used, 5 * RUN_NS), 950, 1000);
}

/* Each share is within 5 % of itself, also one of a twentieth. */
TEST(weights)
{
	static const unsigned int rows[][3] = {
		{100, 100}, {200, 100}, {300, 100}, {100, 700}, {100, 1000}, {100, 2000}, {400, 200, 100},
	};

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		ROW("%u:%u:%u", rows[i][0], rows[i][1], rows[i][2]);
		weigh(rows[i]);
	}
}

/* Eight members of a group have one share beside a program of the same weight. */
TEST(members_of_a_group)
{
	begin();
	add_weighted(100, 0);
	for (int i = 0; i < 8; i++)
		add_weighted(100, 2);
	run(2 * RUN_NS);
	assert_in_range(share_of(0), 450000, 550000);
}

/* One that pauses for less than a ms now and then, which not every look sees: with slices of another length, the two would not share
 * the GPU as their weights say. */
TEST(slices_are_alike)
{
	uint64_t unlike = 0, end;

	begin();
	add((struct program){.kernel = 500 * US, .priority = 50, .weight = 100, .burst = 400, .period = 400 * US});
	add_weighted(100, 0);
	for (end = now + RUN_NS; now < end; unlike += programs[0].slice != programs[1].slice)
		run(MS);
	assert_in_range(permille(unlike * MS, RUN_NS), 0, 20);
}

static uint64_t steps_beside_products(uint64_t gap, bool has_rules)
{
	begin();
	struct program *steps = add((struct program){.kernel = 1930 * US, .gap = gap, .priority = 50, .weight = 100});

	add((struct program){.kernel = 2500 * US, .priority = 50, .weight = 100});
	for (unsigned int i = 0; i < count && !has_rules; i++)
		programs[i].rules = (struct rules){.bounded = 0};
	run(RUN_NS);
	return steps->answers;
}

/* A program with gaps, however short, keeps the others' slices short: it is no slower than in plain turns. */
TEST(no_longer_slices_beside_gaps)
{
	for (uint64_t gap = 60 * US; gap <= 400 * US; gap += 110 * US) {
		ROW("gaps of %llu us", (unsigned long long)(gap / US));
		uint64_t plain = steps_beside_products(gap, false);

		assert_in_range(steps_beside_products(gap, true), plain * 99 / 100, plain * 2);
	}
}

/* A program that was idle for long, or comes late, is owed nothing. */
TEST(nothing_is_saved_up)
{
	begin();
	add_weighted(100, 0);
	run(10 * SECOND);
	add_weighted(100, 0);
	uint64_t before = programs[0].worked;

	run(SECOND);
	assert_in_range(permille(programs[0].worked - before, SECOND), 430, 530);
}

/* --- quota and the bound ------------------------------------------------------------------------------------------------ */

/* Lets a program with a quota of 30 ms in each 100 ms run for a period. Returns how long it was not suspended. */
static uint64_t present_in_period(const struct program *program)
{
	uint64_t end = now + 100 * MS, present = 0;

	for (; now < end; present += !(program->suspension.is_on && now >= program->suspension.since) ? STEP : 0)
		run(STEP);
	return present;
}

/* By the program's own gaps, beside a loop its turns are missing at either edge of its time: so it is the presence that counts. */
TEST(quota)
{
	static const struct {
		uint64_t kernel;
		bool is_beside_loop;
	} rows[] = {{200 * US, false}, {2 * MS, false}, {39 * MS, false}, {392 * MS, false}, {200 * US, true}, {392 * MS, true}};
	const struct segment_revision revision = {.quota = {.run_us = 30000, .period_us = 100000}};

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		unsigned int within = 0;
		uint64_t sum = 0;

		ROW("%llu us%s", (unsigned long long)(rows[i].kernel / US), rows[i].is_beside_loop ? ", beside a loop" : "");
		begin();
		struct program *program = add((struct program){.kernel = rows[i].kernel, .weight = 100});

		rules_use(&program->rules, &revision, &budgets[0], &budgets[0].served, now);
		if (rows[i].is_beside_loop)
			add(LOOP)->rules = (struct rules){.bounded = 0};
		run(200 * MS);
		for (int period = 0; period < 100; period++) {
			uint64_t present = present_in_period(program);

			sum += present;
			within += present >= 29 * MS && present <= 31 * MS;
		}
		assert_in_range(sum / 100, 29700 * US, 30300 * US);
		assert_in_range(within, 99, 100);
	}
}

/* A program that always has the next launch, whose launches are held back, and a thread that looks late. */
struct held {
	uint64_t kernel, late; /* by so much, at most */
	struct quota quota;
	uint64_t spent_at, began, wanted_since, looks_at;
	uint64_t waits_since, tries_at, ends_at; /* 0: it does not wait */
	uint64_t in_flight, launched;
};

/* As gate/keeper.c does. */
static void look_at_held(struct held *held)
{
	const struct suspension none = {.is_on = false};
	bool wants = held->in_flight > 0;

	quota_began(&held->quota, held->began);
	quota_ask(&held->quota, now, wants, &none, &held->looks_at);
	held->spent_at = quota_spent_at(&held->quota, now);
	held->wanted_since = wants ? held->wanted_since : now;
	if (wants)
		held->looks_at = min_u64(held->looks_at, now + max_u64(100 * US, (now - held->wanted_since) / 16));
	held->looks_at += 50 * US + some_below(held->late);
}

/* As gate/hold.c does: the first one in flight wakes the thread. */
static void try_to_launch(struct held *held)
{
	if (quota_has_room(held->spent_at, now, held->in_flight, held->in_flight * held->kernel, held->kernel)) {
		if (held->in_flight == 0) {
			held->began = now;
			held->ends_at = now + held->kernel;
			held->looks_at = min_u64(held->looks_at, now + 20 * US + some_below(held->late));
		}
		held->in_flight++;
		held->launched++;
		held->waits_since = 0;
	} else {
		held->waits_since = held->waits_since ? held->waits_since : now;
		held->tries_at = now + max_u64(20 * US, (now - held->waits_since) / 64) + some_below(50 * US);
	}
}

static uint64_t spent_in_period(struct held *held)
{
	uint64_t end = now + 100 * MS;

	for (held->launched = 0; now < end; now += STEP) {
		if (held->in_flight > 0 && now >= held->ends_at) {
			held->in_flight--;
			held->ends_at += held->kernel;
		}
		if (now >= held->looks_at)
			look_at_held(held);
		if (now >= held->tries_at)
			try_to_launch(held);
	}
	return held->launched * held->kernel;
}

/* They go over by no more than one, or than a look is away from the next; that is paid back; and they use nearly all. */
TEST(quota_of_held_launches)
{
	static const struct {
		uint64_t kernel, late;
	} rows[] = {{200 * US, LATE}, {MS, LATE}, {40 * MS, LATE}};

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct held held = {.kernel = rows[i].kernel, .late = rows[i].late};
		int64_t there = 30 * MS;
		uint64_t sum = 0;

		ROW("%llu us, late by %llu us", (unsigned long long)(rows[i].kernel / US), (unsigned long long)(rows[i].late / US));
		begin();
		quota_use(&held.quota, 30 * MS, 100 * MS, &budgets[0], now);
		for (int period = 0; period < 100; period++) {
			uint64_t spent = spent_in_period(&held);

			assert_true((int64_t)spent <= there + (int64_t)max_u64(held.kernel, MS));
			there = min_i64(30 * MS, there + (int64_t)(30 * MS) - (int64_t)spent);
			sum += spent;
		}
		assert_in_range(sum / 100, 29 * MS, 30500 * US);
	}
}

/* One look as it begins, and the next one after its end. */
TEST(quota_holds_for_one_period_where_it_is_weak)
{
	const struct quota quota = {.run_ns = 30 * MS, .period_ns = 100 * MS};

	assert_true(quota_longest_hold(&quota, false) > 10 * (uint64_t)quota.period_ns);
	assert_int_equal(quota_longest_hold(&quota, true), quota.period_ns);
}

TEST(quota_spent_between_two_looks)
{
	const struct suspension none = {.is_on = false};
	struct quota of_one = {.is_spent = false};
	uint64_t until;

	begin();
	quota_use(&of_one, 5 * MS, 100 * MS, &budgets[0], now);
	quota_ask(&of_one, now, true, &none, &until);
	quota_ask(&of_one, now + 20 * MS, false, &none, &until);
	assert_int_equal(quota_spent_at(&of_one, now + 20 * MS), 0);
}

/* Our thread sleeps in a pause, and a launch asks for a look: the pause costs no quota. */
TEST(quota_after_a_pause)
{
	const struct suspension none = {.is_on = false};
	struct quota of_one = {.is_spent = false};
	uint64_t until;

	begin();
	quota_use(&of_one, 30 * MS, 100 * MS, &budgets[0], now);
	quota_ask(&of_one, now, false, &none, &until);
	now += 3000 * MS;
	assert_false(quota_ask(&of_one, now, true, &none, &until));
	assert_in_range(quota_soonest(&of_one, now) - now, 25 * MS, 30 * MS);
}

/* Each launch lies in many periods, and the thread looks at few of them. */
TEST(quota_of_launches_longer_than_periods)
{
	struct held held = {.kernel = 200 * MS, .late = LATE};
	uint64_t sum = 0;

	begin();
	quota_use(&held.quota, 1 * MS, 5 * MS, &budgets[0], now);
	for (int look = 0; look < 600; look++)
		sum += spent_in_period(&held);
	assert_in_range(sum / 600, 19 * MS, 21 * MS);
}

/* With work on another GPU it is not suspended for long in one go. */
TEST(bound)
{
	const struct segment_revision revision = {.quota = {.run_us = 1000, .period_us = 10000000}};
	struct rules rules = {.bounded = 0};
	struct rules_view view = {.wants = true, .gpus_wanting = 2};
	struct suspension suspension = {.is_on = false};
	static struct budget budget;
	uint64_t time = 20 * SECOND;

	rules_use(&rules, &revision, &budget, &budget.served, time);
	assert_false(rules_ask(&rules, time, &view, &suspension, &rivals_none).suspends);
	time += 2 * MS;
	assert_true(rules_ask(&rules, time, &view, &suspension, &rivals_none).suspends);
	suspension = (struct suspension){true, time};
	assert_true(rules_ask(&rules, time + 100 * MS - 1, &view, &suspension, &rivals_none).suspends);
	struct rules_verdict verdict = rules_ask(&rules, time + 100 * MS, &view, &suspension, &rivals_none);

	assert_false(verdict.suspends);
	assert_int_equal(rules.bounded, 1);
	suspension = (struct suspension){false, time + 100 * MS};
	assert_false(rules_ask(&rules, time + 110 * MS - 1, &view, &suspension, &rivals_none).suspends);
	assert_true(rules_ask(&rules, time + 110 * MS, &view, &suspension, &rivals_none).suspends);
	view.gpus_wanting = 1;
	suspension = (struct suspension){true, time};
	assert_true(rules_ask(&rules, time + SECOND, &view, &suspension, &rivals_none).suspends);
}

RUN_TESTS(NULL, NULL)
