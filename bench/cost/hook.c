/*
 * Usage: hook ROUNDS
 *
 * How much our hook costs a launch, within one process. Each of ROUNDS measures, in another order each time, backwards
 * every second time, the mean of 100 launches that are not waited for (the median of five such means): without the hook;
 * with it and all TPCs in the partition; with it and half of them. As lines "hook-out,NS", "hook-whole,NS", "hook-half,NS".
 *
 * Runs without nvtaskset: the library is loaded after the driver, as with --attach, so the driver's own functions can
 * still take the hook out. It is ../lib/libnvtaskset-attach.so, seen from here.
 */
#include "bench.h"
#include "gpu/kernels.h"
#include "own_partition.h"

#include "attach/entry.h"
#include "driver/slot.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#define DOMAIN_LAUNCH 0xb
#define LAUNCH_BEFORE_UPLOAD 1

static struct bench_gpu gpu;
static struct own_partition partition;

/* --- the hook ------------------------------------------------------------------------------------------------- */

static struct {
	slot_enable *enable; /* the driver's own */
	uint32_t handle;     /* of our library's subscription */
} hook;

static void load_library(void)
{
	char path[BENCH_PATH];
	const char *(*attached)(const char *told);
	const char *refusal;

	bench_beside(path, "../lib/libnvtaskset-attach.so");
	void *library = dlopen(path, RTLD_NOW);

	if (!library)
		bench_fail("%s", dlerror());
	*(void **)&attached = dlsym(library, ATTACH_ENTRY);
	refusal = attached("");
	if (refusal)
		bench_fail("%s", refusal);
}

static void ignore(void *user, int domain, int id, const void *parameters)
{
	(void)user;
	(void)domain;
	(void)id;
	(void)parameters;
}

/* A second subscriber gets our library's subscription. */
static void find_hook(void)
{
	static const CUuuid table_id = SLOT_TABLE_ID;
	const void *found = NULL;

	bench_check(cuGetExportTable(&found, &table_id));
	void *const *table = found;

	hook.enable = (slot_enable *)table[SLOT_ENABLE];
	load_library();
	bench_check(((slot_subscribe *)table[SLOT_SUBSCRIBE])(&hook.handle, ignore, NULL));
	bench_check(((slot_unsubscribe *)table[SLOT_UNSUBSCRIBE])(hook.handle));
}

static void put_in(bool in)
{
	bench_check(hook.enable(in, hook.handle, DOMAIN_LAUNCH, LAUNCH_BEFORE_UPLOAD));
}

/* --- launches ------------------------------------------------------------------------------------------------- */

static const struct state {
	const char *name;
	bool in;
	const struct tpcset *tpcs;
} states[] = {
	{"hook-out", false, &partition.all},
	{"hook-whole", true, &partition.all},
	{"hook-half", true, &partition.halves[0]},
};

#define STATES (int)(sizeof states / sizeof states[0])

static struct bench_launch nothing;

static void measure(int which)
{
	const struct state *state = &states[which];
	uint64_t seen = own_partition_launches();

	own_partition_set(&partition, state->tpcs);
	put_in(state->in);
	double time = bench_submit_time(&gpu, &nothing);

	if ((own_partition_launches() > seen) != state->in)
		bench_fail("the hook could not be taken out or put in");
	printf("%s,%.1f\n", state->name, time);
}

int main(int count, char **arguments)
{
	int rounds = bench_rounds(count, arguments);

	bench_open(&gpu);
	find_hook();
	own_partition_open(&partition, &gpu);
	nothing = (struct bench_launch){bench_kernel(kernels_ptx, "nothing"), 1, 1, 1, 1, 0, NULL};
	bench_submit_time(&gpu, &nothing);
	for (int round = 0; round < rounds; round++)
		bench_round(round, STATES, measure);
	bench_close(&gpu);
	return EXIT_SUCCESS;
}
