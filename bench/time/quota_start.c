/*
 * Usage: quota_start ROUNDS
 *
 * What a quota adds to a program's start, within one process: at the driver's start and when a context was made, which the
 * program waits for ("called"); and how long after that it is in force, which the program does not wait for ("in force"). First
 * once, as in a program that starts; then ROUNDS times, with a quota of 9.9 of 10 s and without one, in another order each
 * time. As lines "first,called,9900ms/10s,US" and so on.
 *
 * The library is part of this program, since nothing else can start it more than once.
 */
#include "bench.h"
#include "driver/channels/kernel_client.h"
#include "inside.h"
#include "own_segment.h"
#include "time/control.h"
#include "time/thread.h"

#include <stdio.h>
#include <stdlib.h>

#define PATIENCE_NS INT64_C(5000000000)
#define PAUSE_NS 10000

static struct bench_gpu gpu;
static const char *when;

static bool is_in_force(void)
{
	return own_segment_time() == SEGMENT_TIME_IN_FORCE;
}

static bool is_over(void)
{
	return !time_thread_exists();
}

static void await(bool (*condition)(void))
{
	int64_t end = bench_now() + PATIENCE_NS;

	while (!condition()) {
		if (bench_now() > end)
			bench_fail("the quota is not what was asked for: %s", segment_time_text(own_segment_time()));
		bench_sleep(PAUSE_NS);
	}
}

static int64_t time_of(void (*call)(void))
{
	int64_t begin = bench_now();

	call();
	return bench_now() - begin;
}

static void start(void)
{
	control_start(false);
}

static void create_context(void)
{
	control_context_created(NULL);
}

static void print(const char *what, bool on, int64_t ns)
{
	printf("%s,%s,%s,%.2f\n", when, what, own_segment_quota(on), (double)ns / 1e3);
}

/* Making a context shows the library the way to the kernel driver; so does what is called here in place of that. */
static void measure(int which)
{
	bool on = which == 0;

	own_segment_set_quota(on);
	int64_t called = time_of(start);

	kernel_client_provoke();
	int64_t begin = bench_now();

	called += time_of(create_context);
	print("called", on, called);
	if (on) {
		await(is_in_force);
		print("in force", on, bench_now() - begin);
		own_segment_set_quota(false);
		control_look();
		await(is_over);
	}
}

int main(int count, char **arguments)
{
	int rounds = bench_rounds(count, arguments);

	bench_open(&gpu);
	inside_attach();
	for (int round = 0; round <= rounds; round++) {
		when = round == 0 ? "first" : "again";
		bench_round(round, 2, measure);
	}
	bench_close(&gpu);
	return EXIT_SUCCESS;
}
