#include "gpus.h"

#include "contexts.h"
#include "driver.h"
#include "log.h"
#include "strict.h"
#include "topology/handover.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct topology_list topologies;
static pthread_once_t prepared = PTHREAD_ONCE_INIT;

/* One for each GPU that the program sees, in the order of `topologies`, and one for all that have no topology. */
static struct gpu gpus[TOPOLOGY_GPUS_MAX + 1];
static struct gpu *const unknown_gpu = &gpus[TOPOLOGY_GPUS_MAX];

static bool find_pci(CUdevice device, struct pci_address *pci)
{
	char text[PCI_ADDRESS_TEXT];

	return driver.device_get_pci_bus_id(text, sizeof text, device) == CUDA_SUCCESS &&
	       pci_address_parse(pci, text, NULL) == 0;
}

/* The GPUs that the driver shows this program. */
struct visible {
	CUdevice devices[TOPOLOGY_GPUS_MAX];
	struct topology_wanted wanted; /* one for each */
};

/* False where the driver does not say. */
static bool find_visible(struct visible *visible)
{
	int count = 0;
	bool found = driver.device_get_count(&count) == CUDA_SUCCESS && count > 0 && count <= TOPOLOGY_GPUS_MAX;

	visible->wanted.count = 0;
	for (int number = 0; number < count && found; number++) {
		found = driver.device_get(&visible->devices[number], number) == CUDA_SUCCESS &&
		        find_pci(visible->devices[number], &visible->wanted.gpus[number]);
		visible->wanted.count++;
	}
	return found;
}

static bool has_uuid(CUdevice device, const char *wanted)
{
	char text[TOPOLOGY_UUID_MAX] = "GPU-", *to = text + 4;
	CUuuid uuid;

	if (!driver.device_get_uuid || driver.device_get_uuid(&uuid, device) != CUDA_SUCCESS)
		return false;
	for (unsigned int byte = 0; byte < sizeof uuid.bytes; byte++)
		to += sprintf(to, byte == 4 || byte == 6 || byte == 8 || byte == 10 ? "-%02x" : "%02x",
		              uuid.bytes[byte]);
	return strcmp(text, wanted) == 0;
}

/* What the command that started this program knew, if that holds for all that the program sees. */
static bool take_handed(const struct visible *visible)
{
	const char *text = secure_getenv(HANDOVER_ENVIRONMENT);
	bool good = text && !topology_named_file() && handover_read("", text, &topologies) == 0;

	for (unsigned int i = 0; i < visible->wanted.count && good; i++) {
		const struct topology *gpu = topology_find(&topologies, visible->wanted.gpus[i]);

		good = gpu && has_uuid(visible->devices[i], gpu->uuid);
	}
	return good;
}

static void load(void)
{
	struct visible visible;
	struct error error;
	bool seen = find_visible(&visible);

	if (!(seen && take_handed(&visible)) &&
	    topology_load_wanted(seen ? &visible.wanted : NULL, &topologies, &error) < 0) {
		strict_refuse(error.reason);
		log_warning("%s; this program runs unrestricted", error.reason);
		topologies.count = 0;
	}
	for (unsigned int i = 0; i < topologies.count; i++) {
		gpus[i].topology = &topologies.gpus[i];
		gpus[i].pci = topologies.gpus[i].pci;
		gpus[i].family = qmd_family_for(topologies.gpus[i].compute_major,
		                                topologies.gpus[i].compute_minor);
	}
}

void gpus_prepare(void)
{
	pthread_once(&prepared, load);
}

bool gpus_some_before_hopper(void)
{
	bool some = false;

	gpus_prepare();
	for (unsigned int i = 0; i < topologies.count; i++)
		some = some || (gpus[i].family && !qmd_tells_what_must_fit(gpus[i].family));
	return some;
}

static CUresult device_of(CUcontext context, CUdevice *device)
{
	CUcontext current = NULL;
	CUresult result = driver.context_get_current(&current);

	if (result == CUDA_SUCCESS && current == context) {
		result = driver.context_get_device(device);
	} else if (driver.context_push(context) == CUDA_SUCCESS) {
		result = driver.context_get_device(device);
		driver.context_pop(&current);
	}
	return result;
}

struct gpu *gpus_of_context(CUcontext context)
{
	struct gpu *gpu = contexts_find(context);
	CUdevice device = 0;

	if (!gpu && device_of(context, &device) == CUDA_SUCCESS) {
		gpu = gpus_of_device(device);
		if (gpu)
			contexts_remember(context, gpu);
	}
	return gpu;
}

struct gpu *gpus_of_device(CUdevice device)
{
	struct gpu *found = unknown_gpu;
	struct pci_address pci;

	gpus_prepare();
	if (!find_pci(device, &pci))
		return NULL;
	for (unsigned int i = 0; i < topologies.count; i++) {
		if (pci_address_equal(gpus[i].pci, pci))
			found = &gpus[i];
	}
	return found;
}

struct tpcset gpus_partition(const struct gpu *gpu, const struct segment *segment)
{
	struct tpcset all = topology_all(gpu->topology), set = all;
	struct segment_revision revision;
	uint64_t number;

	if (segment_read(segment, &revision, &number)) {
		const struct segment_partition *partition = segment_find(&revision, gpu->pci);

		if (partition)
			set = tpcset_and(&partition->set, &all);
	}
	return tpcset_is_empty(&set) ? all : set;
}

void gpus_for_each(void (*visit)(struct gpu *gpu))
{
	for (unsigned int i = 0; i <= TOPOLOGY_GPUS_MAX; i++)
		visit(&gpus[i]);
}

void gpus_after_fork(void)
{
	for (unsigned int i = 0; i <= TOPOLOGY_GPUS_MAX; i++) {
		atomic_store(&gpus[i].compiling, false);
		atomic_store(&gpus[i].current, 0);
		memset(gpus[i].masks, 0, sizeof gpus[i].masks);
	}
}
