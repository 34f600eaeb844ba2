/*
 * When launches are held, on a clock of this file's own. Programs of several priorities launch on a GPU that executes one
 * launch after the other, in the order in which they went. Times are in ms but where another unit stands.
 */
#include "../cases.h"
#include "time/gate/holding.h"

#define MS INT64_C(1000000)
#define SECOND (1000 * MS)
#define BEGIN ((uint64_t)(5 * SECOND))
#define TICK (MS / 4)

/* --- the world ---------------------------------------------------------------------------------------------------- */

#define PROGRAMS 4
#define THREADS 3
#define IN_FLIGHT 64

/* A thread of a program, which has at most one launch that has not gone. */
struct thread {
	struct holding_launch launch;
	bool has_launch;
	int64_t length;
	uint64_t came, wake;
};

static struct program {
	int priority; /* higher first; 0: there is no such program */
	struct holding holding;
	struct reserve reserve;
	struct thread threads[THREADS];
	unsigned int in_flight;
	bool is_busy_elsewhere, is_over;
	uint64_t ran; /* in all */
	/* What it launches by itself; else the test says it. */
	int64_t lengths, pause; /* the most */
	unsigned int seed;
	uint64_t comes[THREADS]; /* 0: never */
	unsigned int launches;
	uint64_t longest_hold;
	uint64_t checksum; /* of all times at which launches went */
} programs[PROGRAMS];

static struct {
	struct executing {
		struct program *program;
		struct reserve_launch reserved;
		int64_t length;
		uint64_t went, begin;
	} launches[IN_FLIGHT];
	unsigned int count;
} gpu;

static uint64_t now;
static bool news;          /* something has changed in this tick */

static bool wants(const struct program *program)
{
	bool wanted = program->in_flight > 0;

	for (unsigned int i = 0; i < THREADS; i++)
		wanted = wanted || (program->threads[i].has_launch && program->threads[i].launch.is_ready);
	return wanted;
}

static struct holding_view view_of(const struct program *program)
{
	struct holding_view view = {.in_flight = program->in_flight,
	                            .is_busy_elsewhere = program->is_busy_elsewhere,
	                            .is_over = program->is_over};

	for (unsigned int i = 0; i < PROGRAMS; i++) {
		bool is_higher = programs[i].priority > program->priority;

		view.rivals.any = view.rivals.any || (programs[i].priority != 0 && &programs[i] != program);
		view.rivals.has_higher = view.rivals.has_higher || is_higher;
		view.rivals.higher_wants = view.rivals.higher_wants || (is_higher && wants(&programs[i]));
	}
	return view;
}

static bool is_struck(const struct holding *before, const struct holding *after)
{
	return memcmp(before->struck, after->struck, sizeof before->struck) != 0 ||
	       before->struck_elsewhere != after->struck_elsewhere;
}

/* What must be so when a launch goes by the rules. */
static void check_rules(const struct program *program, const struct holding_view *view)
{
	assert_false(view->rivals.higher_wants);
	assert_true(!view->rivals.has_higher || view->in_flight < HOLDING_WINDOW);
	if (program->holding.policy == HOLDING_PRT && view->rivals.has_higher && program->holding.higher_wanted != 0 &&
	    now - program->holding.higher_wanted < HOLDING_RECENT_NS)
		assert_int_equal(view->in_flight, 0);
}

static void ask(struct program *program, struct thread *thread)
{
	struct holding_view view = view_of(program);
	struct holding before = program->holding;
	bool was_ready = thread->launch.is_ready;

	if (holding_ask(&program->holding, &thread->launch, &view, now, &thread->wake)) {
		if (!is_struck(&before, &program->holding) && !view.is_over)
			check_rules(program, &view);
		assert_true(gpu.count < IN_FLIGHT);
		gpu.launches[gpu.count++] = (struct executing){program, thread->launch.reserved, thread->length, now, 0};
		program->in_flight++;
		program->launches++;
		program->checksum = program->checksum * 31 + now;
		if (now - thread->came > program->longest_hold)
			program->longest_hold = now - thread->came;
		thread->has_launch = false;
		news = true;
	} else {
		assert_true(thread->wake > now);
		news = news || thread->launch.is_ready != was_ready;
	}
}

static void launch_in(struct program *program, unsigned int number, int64_t length)
{
	struct thread *thread = &program->threads[number];

	assert_false(thread->has_launch);
	*thread = (struct thread){.has_launch = true, .length = length, .came = now};
	if (program->holding.reserve) {
		program->reserve.longest_ns = length;
		thread->launch.reserved = reserve_launch(&program->reserve);
	}
	ask(program, thread);
}

/* Higher ones first, as in the paper's wait queue: what they want is known before others are asked. */
static void ask_all(bool all)
{
	for (unsigned int i = 0; i < PROGRAMS * THREADS; i++) {
		struct program *program = &programs[i / THREADS];
		struct thread *thread = &program->threads[i % THREADS];

		if (thread->has_launch && (all || now >= thread->wake))
			ask(program, thread);
	}
}

static void settle(void)
{
	for (bool all = news; all || news; all = false) {
		news = false;
		ask_all(true);
	}
	ask_all(false);
}

static void end_first(void)
{
	struct executing *first = &gpu.launches[0];
	struct program *program = first->program;

	program->in_flight--;
	program->ran += (uint64_t)first->length;
	if (program->holding.reserve)
		reserve_ended(&program->reserve, &first->reserved, (uint64_t)first->length, now);
	gpu.count--;
	memmove(first, first + 1, gpu.count * sizeof *first);
	news = true;
}

static int64_t any(struct program *program, int64_t least, int64_t most)
{
	return least + (int64_t)((uint64_t)rand_r(&program->seed) % (uint64_t)(most - least + 1));
}

/* Its threads launch, and pause; and wait in the driver while so many are in flight. */
static void come(struct program *program)
{
	for (unsigned int i = 0; i < THREADS; i++) {
		if (program->comes[i] != 0 && now >= program->comes[i] && !program->threads[i].has_launch &&
		    program->in_flight < HOLDING_WINDOW) {
			program->comes[i] = now + (uint64_t)any(program, 0, program->pause / TICK) * (uint64_t)TICK;
			launch_in(program, i, any(program, 1, program->lengths / TICK) * TICK);
		}
	}
}

static void tick(void)
{
	settle();
	for (unsigned int i = 0; i < PROGRAMS; i++)
		come(&programs[i]);
	settle();
	if (gpu.count > 0 && gpu.launches[0].begin == 0)
		gpu.launches[0].begin = now;
	now += (uint64_t)TICK;
	if (gpu.count > 0 && now >= gpu.launches[0].begin + (uint64_t)gpu.launches[0].length)
		end_first();
	settle();
}

static void go_on_until(int64_t ms)
{
	while (now < BEGIN + (uint64_t)(ms * MS))
		tick();
}

static void begin(void)
{
	memset(programs, 0, sizeof programs);
	memset(&gpu, 0, sizeof gpu);
	now = BEGIN;
	news = false;
}

static struct program *add(unsigned int number, int priority, enum holding_policy policy)
{
	programs[number].priority = priority;
	programs[number].holding.policy = policy;
	return &programs[number];
}

static void give_quota(struct program *program, int64_t run, int64_t period)
{
	reserve_begin(&program->reserve, run * MS, period * MS, now);
	program->holding.reserve = &program->reserve;
}

/* At this time, this thread launches something that takes so long. */
static void launch_at(int64_t ms, struct program *program, unsigned int thread, int64_t length)
{
	go_on_until(ms);
	launch_in(program, thread, length * MS);
	settle();
}

static bool is_held(const struct program *program, unsigned int thread)
{
	return program->threads[thread].has_launch;
}

/* The launches that have gone and not ended, the first one is executed: by priority, each. */
static void assert_on_gpu(const char *priorities)
{
	char found[IN_FLIGHT + 1] = "";

	for (unsigned int i = 0; i < gpu.count; i++)
		found[i] = (char)('0' + gpu.launches[i].program->priority);
	assert_string_equal(found, priorities);
}

/* --- high (3), medium (2) and low (1) priority --------------------------------------------------------------------- */

#define HP (&programs[0])
#define MP (&programs[1])
#define LP (&programs[2])

/* HP launches from time to time: it has done so at 0, for 1 ms. */
static void begin_three(enum holding_policy policy)
{
	begin();
	add(0, 3, policy);
	add(1, 2, policy);
	add(2, 1, policy);
	launch_at(0, HP, 0, 1);
	launch_at(0, MP, 0, 1);
	assert_true(is_held(MP, 0));
	go_on_until(10);
	assert_on_gpu("");
}

/* --- bounds ------------------------------------------------------------------------------------------------------- */

/*
 * A higher one wants to run without a pause: each launch goes after 100 ms, and is counted.
 *
 *   time   comes   goes
 *    20    MP 1
 *   120            MP 1, by the bound; MP 2 comes
 *   220            MP 2, by the bound
 */
TEST(bound_of_priority)
{
	begin_three(HOLDING_PRT);
	launch_at(10, HP, 0, 1000);
	launch_at(20, MP, 0, 2);
	assert_true(MP->threads[0].launch.is_ready);
	go_on_until(119);
	assert_on_gpu("3");
	go_on_until(120);
	assert_on_gpu("32");
	launch_at(120, MP, 0, 2);
	go_on_until(219);
	assert_on_gpu("32");
	go_on_until(220);
	assert_on_gpu("322");
	assert_int_equal(MP->holding.struck[HOLDING_FOR_PRIORITY], 2);
	assert_int_equal(MP->holding.struck[HOLDING_FOR_QUOTA], 0);
	assert_int_equal(MP->holding.held, 3);
	assert_int_equal(MP->holding.held_ns, 201 * MS);
}

/*
 * PE, C = 30, T = 100. A launch of 330 is paid back: -300 + 30 after it has ended at 330, so e > 0 when the period begins
 * at 1300. All the time nobody else is kept from running: it is not ready.
 *
 *   time          e
 *     0          30   it goes
 *   100 … 300    30   e = min(C, e + C)
 *   330        -300   it has ended; the next one waits for 11 periods: -300 + 11 x 30 = 30
 *  1400          30   it goes
 */
TEST(bound_of_quota)
{
	begin();
	add(0, 2, HOLDING_PRT);
	add(1, 1, HOLDING_PRT);
	give_quota(HP, 30, 100);
	launch_at(0, HP, 0, 330);
	launch_at(331, HP, 0, 5);
	assert_true(is_held(HP, 0));
	assert_false(HP->threads[0].launch.is_ready);
	launch_at(400, MP, 0, 10);
	assert_on_gpu("1");
	go_on_until(1399);
	assert_true(is_held(HP, 0));
	go_on_until(1400);
	assert_on_gpu("2");
	assert_int_equal(HP->holding.struck[HOLDING_FOR_QUOTA], 0);
	assert_int_equal(HP->holding.held_ns, 1069 * MS);
}

/*
 * Work on another GPU, which may wait for the held launch: no hold lasts longer than 100 ms then. C = 30, T = 1000; what
 * goes by the bound is charged.
 *
 *   time   e
 *     0    30   the first, 40, goes
 *    40   -10   it has ended; the second, 40, comes and is held
 *   140         100 ms: it goes
 *   180   -50   it has ended; the third comes
 *   300         work on the other GPU has ended
 *   400         the third is still held
 *   500         there is work on the other GPU again: the third has been held for long
 */
TEST(other_gpus)
{
	begin();
	add(0, 1, HOLDING_PRT);
	give_quota(HP, 30, 1000);
	HP->is_busy_elsewhere = true;
	launch_at(0, HP, 0, 40);
	launch_at(40, HP, 0, 40);
	go_on_until(139);
	assert_true(is_held(HP, 0));
	go_on_until(140);
	assert_on_gpu("1");
	go_on_until(180);
	assert_int_equal(HP->reserve.left_ns, -50 * MS);
	assert_int_equal(HP->holding.struck_elsewhere, 1);
	HP->is_busy_elsewhere = false;
	launch_at(210, HP, 0, 40);
	go_on_until(400);
	assert_true(is_held(HP, 0));
	HP->is_busy_elsewhere = true;
	news = true;
	go_on_until(401);
	assert_on_gpu("1");
	assert_int_equal(HP->holding.struck_elsewhere, 2);
}

/* The rule is taken away, or MPS's server has ended. */
TEST(is_over)
{
	begin_three(HOLDING_PRT);
	give_quota(MP, 1, 1000);
	launch_at(10, MP, 0, 10);
	launch_at(10, HP, 0, 1000);
	launch_at(20, MP, 0, 10);
	launch_at(20, MP, 1, 10);
	assert_on_gpu("3");
	MP->is_over = true;
	news = true;
	go_on_until(21);
	assert_on_gpu("322");
	assert_int_equal(MP->holding.struck[HOLDING_FOR_PRIORITY], 0);
	launch_at(22, MP, 0, 10);
	assert_on_gpu("3222");
	assert_int_equal(MP->reserve.in_flight_ns, 30 * MS);
}

/* --- random loads ------------------------------------------------------------------------------------------------- */

/* The first one works now and then; the others always have something to launch. */
static void begin_load(unsigned int seed, bool with_quotas)
{
	begin();
	for (unsigned int i = 0; i < PROGRAMS; i++) {
		struct program *program = add(i, 0, HOLDING_PRT);

		program->seed = 100 * seed + i;
		program->priority = i == 0 ? 3 : (int)any(program, 1, 3);
		program->holding.policy = any(program, 0, 1) == 0 ? HOLDING_PRT : HOLDING_HT;
		program->lengths = any(program, 1, i == 0 ? 4 : 60) * TICK;
		program->pause = i == 0 ? any(program, 1, 200) * MS : any(program, 0, 2) * MS;
		if (with_quotas)
			give_quota(program, any(program, 4, 40), 100);
		for (unsigned int thread = 0; thread < THREADS; thread++)
			program->comes[thread] = now + (uint64_t)(any(program, 0, 10) * MS);
	}
}

/* check_rules has looked at each launch. No hold was longer than its bounds, and each program has launched all the time:
 * a launch of the lowest one goes in 100 ms without a quota. */
TEST(random)
{
	for (unsigned int seed = 1; seed <= 20; seed++) {
		begin_load(seed, false);
		for (int second = 1; second <= 5; second++) {
			unsigned int before[PROGRAMS];

			for (unsigned int i = 0; i < PROGRAMS; i++)
				before[i] = programs[i].launches;
			go_on_until(1000 * second);
			for (unsigned int i = 0; i < PROGRAMS; i++)
				assert_true(programs[i].launches >= before[i] + 9);
		}
		for (unsigned int i = 0; i < PROGRAMS; i++)
			assert_true(programs[i].longest_hold <= HOLDING_BOUND_NS + (uint64_t)TICK);
	}
}

/* With quotas: kernels are up to 15 ms, quotas at least 4 of 100, so that a launch needs four periods, and some more for
 * the others that wait and are in flight. Nobody has more than its quota but for the last launches. */
TEST(random_quotas)
{
	for (unsigned int seed = 1; seed <= 20; seed++) {
		begin_load(seed, true);
		go_on_until(10000);
		for (unsigned int i = 0; i < PROGRAMS; i++) {
			const struct program *program = &programs[i];
			int64_t periods = 10 * SECOND / (100 * MS);

			assert_true(program->longest_hold <= 5 * (uint64_t)SECOND);
			assert_true(program->launches >= 10);
			assert_true((int64_t)program->ran <= (periods + 1) * program->reserve.run_ns + 2 * program->lengths);
		}
	}
}

RUN_TESTS(NULL, NULL)
