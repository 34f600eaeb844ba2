#include "hide.h"

#include "driver/contexts.h"
#include "driver/functions.h"
#include "driver/gpus.h"
#include "partition.h"

#include <execinfo.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

static bool on;

void hide_open(void)
{
	const char *text = secure_getenv(HIDE_ENVIRONMENT);

	on = text && strcmp(text, "1") == 0;
}

bool hide_wants_call(int id)
{
	return on && (id == CALL_DEVICE_GET_ATTRIBUTE || id == CALL_MAX_POTENTIAL_BLOCK_SIZE ||
	              id == CALL_MAX_POTENTIAL_BLOCK_SIZE_WITH_FLAGS || id == CALL_MAX_ACTIVE_CLUSTERS ||
	              id == CALL_MAX_POTENTIAL_CLUSTER_SIZE);
}

/* --- who asks ----------------------------------------------------------------------------------------------------- */

#define DEPTH 48

/* A search for the loaded object around an address. */
struct search {
	uintptr_t address;
	const char *name; /* of the object's file, without the directory; NULL: no object */
	uintptr_t base;
};

static bool holds(const struct dl_phdr_info *object, uintptr_t address)
{
	bool found = false;

	for (unsigned int i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &object->dlpi_phdr[i];

		found = found || (segment->p_type == PT_LOAD &&
		                  address - object->dlpi_addr - segment->p_vaddr < segment->p_memsz);
	}
	return found;
}

static int look_at_object(struct dl_phdr_info *object, size_t size, void *data)
{
	struct search *search = data;

	(void)size;
	if (holds(object, search->address)) {
		const char *slash = strrchr(object->dlpi_name, '/');

		search->name = slash ? slash + 1 : object->dlpi_name;
		search->base = object->dlpi_addr;
	}
	return search->name != NULL;
}

static struct search find_object(const void *address)
{
	struct search search = {.address = (uintptr_t)address};

	dl_iterate_phdr(look_at_object, &search);
	return search;
}

static bool begins(const char *name, const char *with)
{
	return strncmp(name, with, strlen(with)) == 0;
}

/* Whether cuBLAS has made the API call announced on this thread, itself or through the CUDA runtime. Also true if the
 * stack cannot be read. The stack, innermost first: our frames (and a sanitizer's), the driver's, perhaps the CUDA
 * runtime's, then the caller's. */
static bool caller_is_cublas(void)
{
	static const char ours;
	const struct link_map *library = driver_library();
	uintptr_t driver_base = library ? library->l_addr : 0;
	void *frames[DEPTH];
	int depth = backtrace(frames, DEPTH);
	struct search own = find_object(&ours), caller = {.name = NULL};
	bool in_driver = false;

	for (int i = 0; i < depth && !caller.name; i++) {
		struct search frame = find_object(frames[i]);

		in_driver = in_driver || (frame.name && frame.base == driver_base);
		if (in_driver && frame.name && frame.base != own.base && frame.base != driver_base &&
		    !begins(frame.name, "libcudart"))
			caller = frame;
	}
	return !caller.name || begins(caller.name, "libcublas");
}

/* --- the size of the partition -------------------------------------------------------------------------- */

static unsigned int sms_of(const struct topology *topology, const struct tpcset *set)
{
	return tpcset_count(set) * topology->sms_per_tpc;
}

/* The SMs of a TPC's group, if the TPC is the first member; otherwise 0. So each group counts once. */
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

/* The SMs of groups with `least` SMs or more. */
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

/* `clusters` is the driver's answer for the whole GPU. Each group gets its share, rounded down. */
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

static void hide_occupancy(const struct call *call, const struct gpu *gpu)
{
	const struct call_occupancy *arguments = (const struct call_occupancy *)call->arguments;
	const struct topology *topology = gpu->topology;
	struct tpcset set = partition_on(gpu);
	int *answer = arguments->answer;
	unsigned int largest = largest_group(topology, &set);

	switch (call->id) {
	case CALL_MAX_ACTIVE_CLUSTERS:
		*answer = smaller(*answer, clusters_in(topology, &set, (unsigned int)*answer,
		                                       calls_cluster_of(arguments->config)));
		break;
	case CALL_MAX_POTENTIAL_CLUSTER_SIZE:
		while ((unsigned int)*answer > largest && *answer > 1)
			*answer /= 2;
		break;
	default:
		/* The answer is the number of blocks that fill the GPU: each TPC holds the same number. */
		*answer = *answer / topology->tpc_count * (int)tpcset_count(&set);
	}
}

static struct gpu *gpu_of_thread(void)
{
	CUcontext context = NULL;

	return driver.context_get_current(&context) == CUDA_SUCCESS && context ? contexts_gpu(context) : NULL;
}

static void hide_attribute(const struct call_attribute *arguments)
{
	const struct gpu *gpu;

	if (arguments->attribute != CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
		return;
	gpu = gpus_of_device(arguments->device);
	if (gpu->topology) {
		struct tpcset set = partition_on(gpu);

		*arguments->value = smaller(*arguments->value, sms_of(gpu->topology, &set));
	}
}

void hide_call_ended(const struct call *call)
{
	const struct gpu *gpu = NULL;

	if (*call->result != CUDA_SUCCESS || !call->arguments[0] || caller_is_cublas())
		return;
	if (call->id == CALL_DEVICE_GET_ATTRIBUTE)
		hide_attribute((const struct call_attribute *)call->arguments);
	else
		gpu = gpu_of_thread();
	if (gpu && gpu->topology)
		hide_occupancy(call, gpu);
}
