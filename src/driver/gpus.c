#include "gpus.h"

#include "base/log.h"
#include "contexts.h"
#include "functions.h"
#include "shim/strict.h"
#include "topology/handover.h"
#include "visible.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static struct topology_list topologies;
static pthread_once_t prepared = PTHREAD_ONCE_INIT;
static atomic_bool is_loaded;

/* One for each GPU that the program sees, in the order of `topologies`, and one for all that have no topology. */
static struct gpu gpus[TOPOLOGY_GPUS_MAX + 1];
static struct gpu *const unknown_gpu = &gpus[TOPOLOGY_GPUS_MAX];

/* What the driver shows this thread's program: found before `load`, which others may wait for while they keep the driver
 * busy. */
static __thread const struct visible *shown __attribute__((tls_model("initial-exec")));

/* What this thread was handed: others must not come upon it, as it does not last. */
static __thread const char *handed __attribute__((tls_model("initial-exec")));

void gpus_hand(const char *text)
{
	handed = text;
}

/* What the command that started this program, or attached to it, knew, if that holds for all that the program sees. */
static bool take_handed(void)
{
	const char *text = handed ? handed : secure_getenv(HANDOVER_ENVIRONMENT);
	bool good = text && shown->gpus.count > 0 && !topology_named_file() && handover_read("", text, &topologies) == 0;

	for (unsigned int i = 0; i < shown->gpus.count && good; i++) {
		const struct topology *gpu = topology_find(&topologies, shown->gpus.gpus[i]);

		good = gpu && strcmp(gpu->uuid, shown->uuids[i]) == 0;
	}
	return good;
}

static void load(void)
{
	struct error error;

	if (!take_handed() &&
	    topology_load_wanted(shown->gpus.count > 0 ? &shown->gpus : NULL, &topologies, &error) < 0) {
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
	if (!visible_find_pci(device, &pci))
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
