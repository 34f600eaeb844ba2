/*
 * Usage: registration ROUNDS
 *
 * How long a context waits, when it has been made, until its kernels can be counted (driver/releases.h): for shared memory
 * that is made and mapped, and registered with the driver. First once, as in a program that starts; then ROUNDS times, each
 * time with memory of its own. With counting turned off and on, in another order each time.
 *
 * As lines "first,off,US", "again,on,US" and so on. The library is part of this program, since nothing else can let a context
 * register more than once. Off is as with NVTASKSET_ACCOUNT=off.
 */
#include "bench.h"
#include "inside.h"
#include "state/segment/owner.h"

#include "driver/contexts.h"
#include "driver/releases.h"
#include "launch/account/account.h"
#include "state/kernels/counts_layout.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

static struct bench_gpu gpu;
static const char *when;

/* The library, which would register at once, leaves that to us. */
static void attach_ourselves(void)
{
	setenv(ACCOUNT_ENVIRONMENT, "off", 1);
	inside_attach();
}

static double time_of_context(void)
{
	int64_t begin = bench_now();

	releases_context_created(gpu.context);
	return (double)(bench_now() - begin) / 1e3;
}

/* A segment has room for a few areas only, so each gets a segment of its own. */
static struct segment make_segment(void)
{
	static const struct segment_revision whole;
	struct segment segment;
	struct error error;

	if (segment_create_private(&segment, &whole, &error) < 0)
		bench_fail("%s", error.reason);
	return segment;
}

/* Nothing was launched, so nothing writes there. */
static void undo(void)
{
	const struct releases *releases = contexts_releases(gpu.context);

	if (!releases || !releases->are_ready)
		bench_fail("kernels are not counted on this GPU");
	struct counts_place *place = releases->place;

	bench_check(cuMemHostUnregister(place));
	releases_after_fork();
	munmap((char *)place - offsetof(struct counts_memory, places), sizeof(struct counts_memory));
}

static void measure(int which)
{
	struct segment segment = make_segment();
	bool on = which == 0;

	if (on)
		releases_use(&segment);
	double time = time_of_context();

	if (on)
		undo();
	printf("%s,%s,%.2f\n", when, on ? "on" : "off", time);
	segment_close(&segment);
}

int main(int count, char **arguments)
{
	int rounds = bench_rounds(count, arguments);

	bench_open(&gpu);
	attach_ourselves();
	for (int round = 0; round <= rounds; round++) {
		when = round == 0 ? "first" : "again";
		bench_round(round, 2, measure);
	}
	bench_close(&gpu);
	return EXIT_SUCCESS;
}
