/*
 * Usage: hook ROUNDS
 *
 * What our hook costs a launch, in one process, so that nothing else differs. In each of ROUNDS, in another order each
 * time, the mean of 100 launches that are not waited for (the median of five such means): with the hook taken out, with it
 * in and all TPCs in the partition, and with it in and half of them. As lines "ROUND,hook-out,NS", "ROUND,hook-whole,NS",
 * "ROUND,hook-half,NS".
 *
 * Runs without nvtaskset: the library comes behind the driver, as --attach brings it, whose own functions can still take
 * the hook out. It is ../lib/libnvtaskset-attach.so, seen from here.
 */
#include "bench.h"
#include "kernels.h"
#include "own_partition.h"

#include "attach/attach.h"
#include "shim/slot.h"

#include <dlfcn.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BATCH 100
#define BATCHES 5

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
	char self[PATH_MAX], path[PATH_MAX + 40];
	ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
	const char *(*attached)(const char *told);
	const char *refusal;

	if (length < 0)
		bench_fail("/proc is not mounted");
	self[length] = '\0';
	snprintf(path, sizeof path, "%s/../lib/libnvtaskset-attach.so", dirname(self));
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

/* Who subscribes beside our library is given its subscription. */
static void find_hook(void)
{
	static const CUuuid table_id = {
		{0x2c, 0x8e, 0x0a, 0xd8, 0x07, 0x10, 0xab, 0x4e, 0x90, 0xdd, 0x54, 0x71, 0x9f, 0xe5, 0xf7, 0x4b}};
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

static double batch(const struct bench_launch *launch)
{
	int64_t start = bench_now();

	for (int i = 0; i < BATCH; i++)
		bench_start(&gpu, launch);
	int64_t end = bench_now();

	bench_wait(&gpu);
	return (double)(end - start) / BATCH;
}

static int compare(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

static double median_of_batches(const struct bench_launch *launch)
{
	double means[BATCHES];

	batch(launch);
	for (int i = 0; i < BATCHES; i++)
		means[i] = batch(launch);
	qsort(means, BATCHES, sizeof means[0], compare);
	return means[BATCHES / 2];
}

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

static void measure(int round, const struct state *state, const struct bench_launch *launch)
{
	uint64_t seen = own_partition_launches();

	own_partition_set(&partition, state->tpcs);
	put_in(state->in);
	double time = median_of_batches(launch);

	if ((own_partition_launches() > seen) != state->in)
		bench_fail("the hook could not be taken out or put in");
	printf("%d,%s,%.1f\n", round, state->name, time);
}

int main(int count, char **arguments)
{
	int rounds = count == 2 ? (int)bench_number(arguments[1], "ROUNDS") : 0;

	if (rounds <= 0)
		bench_fail("Usage: hook ROUNDS");
	bench_open(&gpu);
	find_hook();
	own_partition_open(&partition, &gpu);
	const struct bench_launch nothing = {bench_kernel(kernels_ptx, "nothing"), 1, 1, 1, 1, 0, NULL};

	median_of_batches(&nothing);
	for (int round = 1; round <= rounds; round++) {
		for (int i = 0; i < STATES; i++)
			measure(round, &states[(round + i) % STATES], &nothing);
	}
	bench_close(&gpu);
	return EXIT_SUCCESS;
}
