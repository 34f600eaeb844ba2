/* How long what is in flight takes: sums, beside a plain list of launches, and with threads that add at the same time. */
#include "../cases.h"

#include "time/rules/flight.h"

#define US UINT64_C(1024) /* lengths are multiples of 64 ns */

static struct flight flight;
static struct flight_seen seen; /* what a thread would see now: with nothing else between a look and the end of its call */
static uint64_t last_ns;        /* of the last launch */

FIXTURE(begin)
{
	flight = (struct flight){.word = 0};
	seen = (struct flight_seen){.word = 0};
}

static uint64_t look(void)
{
	seen.word = atomic_load(&flight.word);
	return flight_look(&seen);
}

/* A launch of one kernel, as its call does. */
static void launch_into(uintptr_t stream, uint64_t ns)
{
	look();
	flight_add(&flight, &seen, ns, stream);
	last_ns = ns;
	seen.in_flight++;
}

static void launch(uint64_t ns)
{
	launch_into(7, ns);
}

/* One like the last one. */
static void launch_as_before(void)
{
	flight_add_more(&flight, flight_more(last_ns));
	seen.in_flight++;
}

/* One outside of a call. */
static void launch_unseen(void)
{
	flight_add_unseen(&flight);
	seen.in_flight++;
}

static void end(uint64_t kernels)
{
	seen.ended += kernels;
	seen.in_flight -= kernels;
}

static uint64_t all(void)
{
	return look();
}

static bool is_in(uintptr_t stream)
{
	return flight_is_in(&flight, &seen, stream);
}

TEST(until_nothing_is_in_flight)
{
	assert_int_equal(all(), 0);
	launch(90 * US);
	launch(5 * US);
	launch(20 * US);
	assert_each(all(), 115 * US, flight_longest(&flight), 90 * US);
	end(2);
	assert_each(all(), 90 * US, flight_longest(&flight), 90 * US);
	launch(1 * US);
	assert_int_equal(all(), 116 * US);
	end(2);
	assert_int_equal(all(), 0);
	launch(3 * US);
	assert_each(all(), 3 * US, flight_longest(&flight), 3 * US);
}

/* What is in flight in another stream is not before a launch. */
TEST(in_one_stream)
{
	launch(90 * US);
	launch(5 * US);
	assert_each(is_in(7), true, is_in(8), false);
	launch_into(8, 5 * US);
	assert_each(is_in(7), false, is_in(8), false);
	end(1);
	assert_each(is_in(7), false, is_in(8), false);
	end(1);
	assert_each(is_in(7), false, is_in(8), true);
	launch_into(8, 5 * US);
	assert_each(is_in(7), false, is_in(8), true);
}

/* So many at most, whatever was launched since nothing was in flight. */
TEST(no_more_than_there_are)
{
	for (int i = 0; i < 30; i++)
		launch(10 * US);
	seen.ended += 29, seen.in_flight -= 29;
	assert_int_equal(all(), 10 * US);
}

TEST(a_graph)
{
	launch(10 * US);
	launch(500 * US);
	seen.in_flight += 99;
	assert_int_equal(all(), 510 * US);
	launch(4 * US);
	assert_int_equal(all(), 514 * US);
	end(51);
	/* All of it, until its last node has ended. */
	assert_true(all() >= 504 * US);
	end(51);
	assert_int_equal(all(), 0);
}

/* While its call goes on, some of its nodes are counted. */
TEST(a_graph_on_its_way)
{
	look();
	flight_add(&flight, &seen, 500 * US, 7);
	seen.in_flight += 3;
	assert_int_equal(all(), 500 * US);
}

/* Until nothing is in flight. */
TEST(lengths_that_are_not_known)
{
	launch(10 * US);
	launch(FLIGHT_NEVER);
	launch(10 * US);
	assert_each(all(), FLIGHT_NEVER, flight_longest(&flight), FLIGHT_NEVER);
	end(2);
	assert_int_equal(all(), FLIGHT_NEVER);
	end(1);
	assert_int_equal(all(), 0);
	launch(10 * US);
	assert_each(all(), 10 * US, flight_longest(&flight), 10 * US);
}

/* More than the word holds. */
TEST(too_long_together)
{
	for (int i = 0; i < 100; i++)
		launch(1000000 * US);
	assert_int_equal(all(), FLIGHT_NEVER);
	end(99);
	assert_int_equal(all(), 1000000 * US);
	launch(FLIGHT_NEVER - 1);
	launch(FLIGHT_NEVER - 1);
	assert_int_equal(all(), FLIGHT_NEVER);
}

/* Nobody has added what was launched before this was looked at. */
TEST(the_very_first)
{
	launch_unseen();
	seen.in_flight++;
	assert_int_equal(all(), FLIGHT_NEVER);
	launch(5 * US);
	assert_int_equal(all(), FLIGHT_NEVER);
	end(2);
	assert_int_equal(all(), FLIGHT_NEVER);
	end(1);
	launch(5 * US);
	assert_int_equal(all(), 5 * US);
}

/* Also where the first one is shorter than the last one before it: then what goes as that did is decided about anew. */
TEST(the_first_one_is_shorter)
{
	for (unsigned int i = 0; i < 6; i++) {
		look();
		assert_false(flight_add(&flight, &seen, 90 * US, 7));
		seen.in_flight++;
		end(1);
		assert_int_equal(flight_longest(&flight), 90 * US);
		look();
		assert_true(flight_add(&flight, &seen, 5 * US, 7));
		seen.in_flight++;
		look();
		assert_false(flight_add(&flight, &seen, 3 * US, 7));
		seen.in_flight++;
		assert_each(all(), 8 * US, flight_longest(&flight), 5 * US);
		end(2);
	}
}

TEST(as_the_one_before)
{
	launch(10 * US);
	launch_as_before();
	launch_as_before();
	assert_int_equal(all(), 30 * US);
	launch(5 * US);
	assert_int_equal(all(), 35 * US);
	end(1);
	assert_int_equal(all(), 30 * US);
	end(3);
	assert_int_equal(all(), 0);
	launch_as_before();
	assert_int_equal(all(), 10 * US);
}

TEST(outside_of_a_call)
{
	launch(10 * US);
	launch_unseen();
	launch(3 * US);
	assert_int_equal(all(), 23 * US);
	end(3);
	launch_unseen();
	assert_int_equal(all(), 10 * US);
	launch(3 * US);
	assert_int_equal(all(), 20 * US);
}

/* They are as long as the one before, also behind a shorter one. */
TEST(behind_a_shorter_one)
{
	launch(90 * US);
	launch_as_before();
	launch(5 * US);
	assert_int_equal(all(), 185 * US);
	end(3);
	launch(90 * US);
	end(1);
	launch_as_before();
	launch(5 * US);
	assert_each(all(), 180 * US, flight_longest(&flight), 90 * US);
}

/* Refused or captured ones are no launches: once nothing is in flight, this is known. */
TEST(refused)
{
	launch(10 * US);
	seen.in_flight--;
	launch_as_before();
	assert_int_equal(all(), 10 * US);
}

/* What another thread adds is not forgotten by one that had seen nothing in flight before. */
TEST(added_meanwhile)
{
	look();
	struct flight_seen before = seen;

	flight_add(&flight, &seen, 90 * US, 7);
	seen.in_flight++;
	flight_add(&flight, &before, 5 * US, 7);
	seen.in_flight++;
	assert_int_equal(all(), 95 * US);
}

/* Nor where the sum and the longest are as they were. */
TEST(begun_anew_meanwhile)
{
	launch(5 * US);
	seen.ended++, seen.in_flight = 0;
	look();
	struct flight_seen before = seen;

	flight_add(&flight, &seen, 5 * US, 7);
	seen.in_flight++;
	flight_add(&flight, &before, 3 * US, 7);
	seen.in_flight++;
	assert_int_equal(all(), 8 * US);
}

/* One that is between its look and the end of its call is not in flight yet. */
TEST(on_its_way)
{
	struct flight_seen late;

	launch(5 * US);
	look();
	late = seen;
	flight_add(&flight, &late, 90 * US, 7);
	seen.entering = 1;
	launch(5 * US);
	end(2);
	seen.entering = 0, seen.in_flight = 1;
	assert_int_equal(all(), 90 * US);
}

/* Its length is not known yet. */
TEST(not_added_yet)
{
	launch(30 * US);
	seen.entering = 1;
	assert_int_equal(all(), 60 * US);
}

/* --- beside a list ---------------------------------------------------------------------------------------------------- */

#define MOST 64

static struct model {
	struct listed {
		uint64_t ns, kernels;
		uintptr_t stream;
	} list[MOST];
	unsigned int count, most;
} model;

static void list_launch(struct listed launched)
{
	model.list[model.count++] = launched;
}

/* The first one of any stream ends, with all of its kernels. */
static void end_any(void)
{
	unsigned int which = some_below(model.count), i = 0;

	while (model.list[i].stream != model.list[which].stream)
		i++;
	seen.ended += model.list[i].kernels;
	seen.in_flight -= model.list[i].kernels;
	memmove(&model.list[i], &model.list[i + 1], sizeof model.list[0] * (--model.count - i));
}

static void do_any(unsigned int streams)
{
	struct listed any = {1 + some_below(100) * US, 1, 1 + some_below(streams)};
	uint64_t what = some_below(10);

	if (what < 4 && model.count > 0) {
		end_any();
	} else if (what < 7 && model.count > 0 && model.count < model.most && streams == 1) {
		list_launch((struct listed){last_ns, 1, 1});
		launch_as_before();
	} else if (model.count < model.most) {
		any.kernels = what == 9 ? 1 + some_below(20) : 1;
		list_launch(any);
		launch_into(any.stream, any.ns);
		seen.in_flight += any.kernels - 1;
	}
}

static void compare(unsigned int streams)
{
	uint64_t steps = 300000;
	double exact = 0, told = 0;

	model.count = 0;
	model.most = 4;
	for (uint64_t i = 0; i < steps; i++) {
		do_any(streams);
		uint64_t sum = 0, ns = all();

		for (unsigned int listed = 0; listed < model.count; listed++)
			sum += model.list[listed].ns;
		if (ns < sum)
			fail_msg("step %d: %d instead of %d", (int)i, (int)ns, (int)sum);
		exact += (double)sum;
		told += (double)ns;
		if (i % 1000 == 999) {
			while (model.count > 0)
				end_any();
			assert_int_equal(all(), 0);
			model.most = 1 + some_below(MOST);
		}
	}
	print_message("# %d stream(s): %.2f times as much as there is\n", (int)streams, told / exact);
}

TEST(a_list_of_one_stream_and_of_several)
{
	compare(1);
	compare(3);
}

/* --- threads ---------------------------------------------------------------------------------------------------------- */

#define THREADS 3
#define LAUNCHES 100000

/* What the gate and the GPU count. Those in flight end in the order in which they were launched, when anybody ends them. */
static struct {
	_Atomic uint64_t entering, launched, ended;
	atomic_uint is_busy[THREADS]; /* it has a long one in flight */
	_Atomic uint64_t ends_at[THREADS]; /* when so many have ended */
	atomic_uint running;
} gpu;

static uint64_t see(struct flight_seen *now)
{
	now->word = atomic_load(&flight.word);
	now->entering = atomic_fetch_add(&gpu.entering, 1);
	do {
		now->ended = atomic_load(&gpu.ended);
		now->in_flight = atomic_load(&gpu.launched) - now->ended;
	} while (atomic_load(&gpu.ended) != now->ended);
	return flight_look(now);
}

/* One launch is long, and many are short: as long as its long one has not ended, a thread must see it. */
static void *launch_and_look(void *number)
{
	uint64_t last = 0, strays = 0;

	for (unsigned int i = 0; i < LAUNCHES; i++) {
		bool is_long = i % 50 == (uintptr_t)number;
		struct flight_seen now;

		uint64_t ns = see(&now);

		if (last > now.ended)
			strays += ns < 1000 * US;
		flight_add(&flight, &now, is_long ? 1000 * US : US, 7);
		uint64_t position = atomic_fetch_add(&gpu.launched, 1) + 1;

		atomic_fetch_sub(&gpu.entering, 1);
		last = is_long ? position : last;
		if (i % 7 == 0)
			sched_yield();
	}
	atomic_fetch_sub(&gpu.running, 1);
	return (void *)(uintptr_t)strays;
}

static void *end_them(void *unused)
{
	while (atomic_load(&gpu.running) > 0) {
		if (atomic_load(&gpu.launched) > atomic_load(&gpu.ended))
			atomic_fetch_add(&gpu.ended, 1);
		if (atomic_load(&gpu.ended) % 16 == 0)
			sched_yield();
	}
	return unused;
}

static void *add_often(void *unused)
{
	for (unsigned int i = 0; i < LAUNCHES; i += 2) {
		flight_add(&flight, &seen, US, 7);
		flight_add_more(&flight, flight_more(US));
	}
	return unused;
}

TEST(sum_of_several_threads)
{
	threads_run(THREADS, add_often, NULL, 0);
	seen.in_flight = THREADS * LAUNCHES;
	assert_int_equal(all(), THREADS * LAUNCHES * US);
}

TEST(several_threads)
{
	memset(&gpu, 0, sizeof gpu);
	atomic_store(&gpu.running, THREADS);
	pthread_t ends = thread_start(end_them, NULL);

	threads_run(THREADS, launch_and_look, (void *)1, 1);
	assert_int_equal(pthread_join(ends, NULL), 0);
	atomic_store(&gpu.ended, atomic_load(&gpu.launched));
	struct flight_seen now;

	assert_int_equal(see(&now), 0);
}

RUN_TESTS(begin, NULL)
