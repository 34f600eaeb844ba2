/*
 * Usage: announced ROUNDS
 *
 * The cost of the driver's announcements for a launch, with a callback that does nothing. Each of ROUNDS measures the
 * states in a different order, backwards every second time: the mean of 100 launches without a wait, and the median of
 * five such means. Prints lines "STATE,NS".
 *
 * Runs without nvtaskset: the subscription is the program's own.
 */
#include "bench.h"
#include "driver/calls.h"
#include "driver/slot.h"
#include "gpu/kernels.h"

#include <stdio.h>
#include <stdlib.h>

/* Groups of events that the library asks for together. */
enum {
	UPLOAD = 1,     /* before the descriptor is uploaded */
	CALL = 2,       /* the begin and the end of the call */
	SUBMISSION = 4, /* the commands, and their entry in the ring */
};

static const struct {
	unsigned int group;
	int domain, id;
} announced[] = {
	{UPLOAD, 0xb, 1},
	{CALL, 0x6, CALL_LAUNCH},
	{SUBMISSION, 0x12, 2},
	{SUBMISSION, 0x12, 6},
};

static const struct state {
	const char *name;
	unsigned int groups;
} states[] = {
	{"nothing", 0},
	{"upload", UPLOAD},
	{"call", CALL},
	{"submission", SUBMISSION},
	{"upload-submission", UPLOAD | SUBMISSION},
	{"all", UPLOAD | CALL | SUBMISSION},
};

#define STATES (int)(sizeof states / sizeof states[0])

static struct bench_gpu gpu;
static struct bench_launch nothing;
static uint64_t heard;

static struct {
	slot_enable *enable;
	uint32_t handle;
} hook;

static void count_event(void *user, int domain, int id, const void *parameters)
{
	(void)user;
	(void)domain;
	(void)id;
	(void)parameters;
	heard++;
}

static void subscribe(void)
{
	static const CUuuid table_id = SLOT_TABLE_ID;
	const void *found = NULL;

	bench_check(cuGetExportTable(&found, &table_id));
	void *const *table = found;

	hook.enable = (slot_enable *)table[SLOT_ENABLE];
	bench_check(((slot_subscribe *)table[SLOT_SUBSCRIBE])(&hook.handle, count_event, NULL));
}

static void measure(int which)
{
	const struct state *state = &states[which];

	for (size_t i = 0; i < sizeof announced / sizeof announced[0]; i++)
		bench_check(hook.enable((announced[i].group & state->groups) != 0, hook.handle, announced[i].domain,
		                        announced[i].id));
	heard = 0;
	double time = bench_submit_time(&gpu, &nothing);

	if ((heard > 0) != (state->groups != 0))
		bench_fail("%s: announced %llu times", state->name, (unsigned long long)heard);
	printf("%s,%.1f\n", state->name, time);
}

int main(int count, char **arguments)
{
	int rounds = bench_rounds(count, arguments);

	bench_open(&gpu);
	subscribe();
	nothing = (struct bench_launch){bench_kernel(kernels_ptx, "nothing"), 1, 1, 1, 1, 0, NULL};
	bench_submit_time(&gpu, &nothing);
	for (int round = 0; round < rounds; round++)
		bench_round(round, STATES, measure);
	bench_close(&gpu);
	return EXIT_SUCCESS;
}
