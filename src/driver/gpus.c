#include "gpus.h"

#include "functions.h"
#include "gpu/topology/topology.h"
#include "visible.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static struct topology_list topologies;
static pthread_once_t prepared = PTHREAD_ONCE_INIT;
static atomic_bool is_loaded;

/* In the order of `topologies`. */
static struct gpu gpus[GPUS_MAX];
static struct gpu *const unknown_gpu = &gpus[TOPOLOGY_GPUS_MAX];

/* The GPUs that the driver shows the program. Found before pthread_once: other threads may wait there while they hold a
 * lock of the driver's, so `load` must not call the driver. */
static __thread const struct visible *shown __attribute__((tls_model("initial-exec")));

/* The text given to gpus_use_description. Of this thread only, since it does not last. */
static __thread const char *description __attribute__((tls_model("initial-exec")));

static void (*report_unknown)(const char *reason);

void gpus_open(void (*report)(const char *reason))
{
	report_unknown = report;
}

void gpus_use_description(const char *text)
{
	description = text;
}

/* Uses the description of the GPUs from the command that started this program, or attached to it. False if there is
 * none, or if it does not have all GPUs that the program sees. */
static bool read_description(void)
{
	const char *text = description ? description : secure_getenv(TOPOLOGY_ENVIRONMENT);
	bool good = text && shown->gpus.count > 0 && !topology_named_file() &&
	            topology_environment_read("", text, &topologies) == 0;

	for (unsigned int i = 0; i < shown->gpus.count && good; i++) {
		const struct topology *gpu = topology_find(&topologies, shown->gpus.gpus[i]);

		good = gpu && strcmp(gpu->uuid, shown->uuids[i]) == 0;
	}
	return good;
}

static void load(void)
{
	struct error error;

	if (!read_description() &&
	    topology_load_wanted(shown->gpus.count > 0 ? &shown->gpus : NULL, &topologies, &error) < 0) {
		report_unknown(error.reason);
		topologies.count = 0;
	}
	for (unsigned int i = 0; i < topologies.count; i++) {
		gpus[i].topology = &topologies.gpus[i];
		gpus[i].pci = topologies.gpus[i].pci;
		gpus[i].family = qmd_family_for(topologies.gpus[i].compute_major,
		                                topologies.gpus[i].compute_minor);
	}
	atomic_store_explicit(&is_loaded, true, memory_order_release);
}

void gpus_prepare(void)
{
	struct visible visible;

	if (atomic_load_explicit(&is_loaded, memory_order_acquire))
		return;
	visible_find(&visible);
	shown = &visible;
	pthread_once(&prepared, load);
	shown = NULL;
}

unsigned int gpus_number(const struct gpu *gpu)
{
	return (unsigned int)(gpu - gpus);
}

bool gpus_have_masks(const struct gpu *gpu)
{
	return gpu->family && topology_mask_bits(gpu->topology) <= qmd_mask_bits(gpu->family);
}

bool gpus_some_before_hopper(void)
{
	bool some = false;

	gpus_prepare();
	for (unsigned int i = 0; i < topologies.count; i++)
		some = some || (gpus[i].family && !qmd_shows_must_fit(gpus[i].family));
	return some;
}

CUresult gpus_device_of(CUcontext context, CUdevice *device)
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

struct context_facts gpus_facts_of_context(CUcontext context)
{
	struct context_facts facts = contexts_find(context);
	CUdevice device = 0;

	if (!facts.gpu && gpus_device_of(context, &device) == CUDA_SUCCESS) {
		facts.gpu = gpus_of_device(device);
		if (facts.gpu)
			contexts_remember(context, facts.gpu);
	}
	return facts;
}

struct gpu *gpus_of_context(CUcontext context)
{
	return gpus_facts_of_context(context).gpu;
}

static struct gpu *find(struct pci_address pci)
{
	struct gpu *found = NULL;

	for (unsigned int i = 0; i < topologies.count; i++) {
		if (pci_address_equal(gpus[i].pci, pci))
			found = &gpus[i];
	}
	return found;
}

struct gpu *gpus_of_device(CUdevice device)
{
	struct pci_address pci;

	gpus_prepare();
	if (!visible_find_pci(device, &pci))
		return NULL;
	struct gpu *found = find(pci);

	return found ? found : unknown_gpu;
}

const struct gpu *gpus_at(struct pci_address pci)
{
	return atomic_load_explicit(&is_loaded, memory_order_acquire) ? find(pci) : NULL;
}
