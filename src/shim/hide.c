#include "hide.h"

#include "caller.h"
#include "driver/functions.h"
#include "driver/gpus.h"
#include "residency.h"

#include <stdlib.h>
#include <string.h>

enum {
	CALL_DEVICE_GET_ATTRIBUTE = 9,
	CALL_MAX_POTENTIAL_BLOCK_SIZE = 384,
	CALL_MAX_POTENTIAL_BLOCK_SIZE_WITH_FLAGS = 452,
	CALL_MAX_ACTIVE_CLUSTERS = 676,
	CALL_MAX_POTENTIAL_CLUSTER_SIZE = 675
};

/* As the driver has them. */
struct attribute_arguments {
	int *value;
	int attribute;
	CUdevice device;
};

/* Of all others, the answer in question comes first. */
struct occupancy_arguments {
	int *answer;
};

static bool on;
static struct segment segment;

void hide_open(void)
{
	const char *text = secure_getenv(HIDE_ENVIRONMENT);

	on = text && strcmp(text, "1") == 0;
}

void hide_use(const struct segment *wanted)
{
	segment = *wanted;
}

bool hide_wants_call(int call)
{
	return on && (call == CALL_DEVICE_GET_ATTRIBUTE || call == CALL_MAX_POTENTIAL_BLOCK_SIZE ||
	              call == CALL_MAX_POTENTIAL_BLOCK_SIZE_WITH_FLAGS || call == CALL_MAX_ACTIVE_CLUSTERS ||
	              call == CALL_MAX_POTENTIAL_CLUSTER_SIZE);
}

/* --- what the partition has ---------------------------------------------------------------------------- */

static unsigned int sms_of(const struct topology *topology, const struct tpcset *set)
{
	return tpcset_count(set) * topology->sms_per_tpc;
}

/* So that each group counts once: how many SMs it has, for the first of its members; 0 for the others. */
static unsigned int group_sms(const struct topology *topology, const struct tpcset *set, unsigned int tpc)
{
	struct tpcset group = topology_cluster_group(topology, set, tpc);

	return tpcset_next(&group, 0) == tpc ? sms_of(topology, &group) : 0;
}

static unsigned int largest_group(const struct topology *topology, const struct tpcset *set)
{
	unsigned int largest = 0;

	for (unsigned int tpc = tpcset_next(set, 0); tpc < TPCSET_MAX; tpc = tpcset_next(set, tpc + 1)) {
		unsigned int sms = group_sms(topology, set, tpc);

		largest = sms > largest ? sms : largest;
	}
	return largest;
}

/* The SMs of groups that have at least this many. */
static unsigned int sms_in_groups(const struct topology *topology, const struct tpcset *set, unsigned int least)
{
	unsigned int sum = 0;

	for (unsigned int tpc = tpcset_next(set, 0); tpc < TPCSET_MAX; tpc = tpcset_next(set, tpc + 1)) {
		unsigned int sms = group_sms(topology, set, tpc);

		sum += sms >= least ? sms : 0;
	}
	return sum;
}

/* --- answers ------------------------------------------------------------------------------------------- */

static int smaller(int answer, unsigned int limit)
{
	return (unsigned int)answer > limit ? (int)limit : answer;
}

/* A share of what the driver has counted for the whole GPU, group by group. */
static unsigned int clusters_in(const struct topology *topology, const struct tpcset *set, unsigned int clusters,
                                unsigned int cluster)
{
	struct tpcset all = topology_all(topology);
	unsigned int whole = sms_in_groups(topology, &all, cluster), sum = 0;

	for (unsigned int tpc = tpcset_next(set, 0); whole > 0 && tpc < TPCSET_MAX; tpc = tpcset_next(set, tpc + 1)) {
		unsigned int sms = group_sms(topology, set, tpc);

		if (sms >= cluster)
			sum += clusters * sms / whole;
	}
	return sum;
}

static void hide_occupancy(int call, void *const *arguments, const struct gpu *gpu)
{
	const struct topology *topology = gpu->topology;
	struct tpcset set = gpus_partition(gpu, &segment);
	int *answer = ((const struct occupancy_arguments *)arguments)->answer;
	unsigned int largest = largest_group(topology, &set);

	switch (call) {
	case CALL_MAX_ACTIVE_CLUSTERS:
		*answer = smaller(*answer, clusters_in(topology, &set, (unsigned int)*answer, fit_cluster_of(arguments[2])));
		break;
	case CALL_MAX_POTENTIAL_CLUSTER_SIZE:
		while ((unsigned int)*answer > largest && *answer > 1)
			*answer /= 2;
		break;
	default:
		/* As many blocks as the GPU holds at once: the same number for each SM. */
		*answer = *answer / topology->tpc_count * (int)tpcset_count(&set);
	}
}

static struct gpu *gpu_of_thread(void)
{
	CUcontext context = NULL;

	return driver.context_get_current(&context) == CUDA_SUCCESS && context ? gpus_of_context(context) : NULL;
}

static void hide_attribute(const struct attribute_arguments *arguments)
{
	const struct gpu *gpu;

	if (arguments->attribute != CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
		return;
	gpu = gpus_of_device(arguments->device);
	if (gpu && gpu->topology) {
		struct tpcset set = gpus_partition(gpu, &segment);

		*arguments->value = smaller(*arguments->value, sms_of(gpu->topology, &set));
	}
}

void hide_call_ended(int call, void *const *arguments, CUresult result)
{
	const struct gpu *gpu = NULL;

	if (result != CUDA_SUCCESS || !arguments[0] || caller_is_cublas())
		return;
	if (call == CALL_DEVICE_GET_ATTRIBUTE)
		hide_attribute((const struct attribute_arguments *)arguments);
	else
		gpu = gpu_of_thread();
	if (gpu && gpu->topology)
		hide_occupancy(call, arguments, gpu);
}
