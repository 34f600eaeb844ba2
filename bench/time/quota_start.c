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
#include "state/segment/edit.h"
#include "state/segment/find.h"
#include "time/control.h"
#include "time/thread.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define PERIOD_US 10000000
#define RUN_US 9900000
#define PATIENCE_NS INT64_C(5000000000)
#define PAUSE_NS 10000

/* Of src/shim/entry_attached.c. */
const char *nvtaskset_attached(const char *argument);

static struct bench_gpu gpu;
static struct segment segment;

/* What is edited here is what the library obeys. */
static void attach_ourselves(void)
{
	const char *refusal = nvtaskset_attached("");
	struct error error;

	if (refusal)
		bench_fail("%s", refusal);
	if (segment_open(&segment, getpid(), &error) != SEGMENT_FOUND)
		bench_fail("%s", error.reason);
}

static void set_quota(bool on)
{
	const struct segment_revision wanted = {.quota = {.run_us = on ? RUN_US : PERIOD_US, .period_us = PERIOD_US}};
	struct error error;

	if (segment_change(&segment, &wanted, NULL, &error) < 0)
		bench_fail("%s", error.reason);
}

static enum segment_time_state state(void)
{
	struct segment_time time;

	segment_read_time(&segment, &time);
	return time.number == segment_revision_number(&segment) ? time.state : SEGMENT_TIME_PENDING;
}

static bool is_in_force(void)
{
	return state() == SEGMENT_TIME_IN_FORCE;
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
			bench_fail("the quota is not what was asked for: %s", segment_time_text(state()));
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

static void print(const char *when, const char *what, bool on, int64_t ns)
{
	printf("%s,%s,%s,%.2f\n", when, what, on ? "9900ms/10s" : "unlimited", (double)ns / 1e3);
}

/* Making a context shows the library the way to the kernel driver; so does what is called here in place of that. */
static void measure(const char *when, bool on)
{
	set_quota(on);
	int64_t called = time_of(start);

	kernel_client_provoke();
	int64_t begin = bench_now();

	called += time_of(control_context_created);
	print(when, "called", on, called);
	if (on) {
		await(is_in_force);
		print(when, "in force", on, bench_now() - begin);
		set_quota(false);
		control_look();
		await(is_over);
	}
}

int main(int count, char **arguments)
{
	int rounds = count == 2 ? (int)bench_number(arguments[1], "ROUNDS") : 0;

	if (rounds <= 0)
		bench_fail("usage: quota_start ROUNDS");
	bench_open(&gpu);
	attach_ourselves();
	for (int round = 0; round <= rounds; round++) {
		for (int i = 0; i < 2; i++)
			measure(round == 0 ? "first" : "again", (i + round) % 2 == 0);
	}
	bench_close(&gpu);
	return EXIT_SUCCESS;
}
