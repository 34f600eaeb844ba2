#include "gpus.h"

#include "functions.h"
#include "gpu/pci_address.h"

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

/* The GPUs that the driver shows the program. Found before pthread_once: a thread may wait there with a lock of the
 * driver's, so `load` must not call the driver. */
struct visible {
	struct topology_wanted gpus;                        /* empty if the driver does not say */
	char uuids[TOPOLOGY_GPUS_MAX][TOPOLOGY_UUID_MAX]; /* the MIG instance's, if MIG is on; "" if unknown */
};
static __thread const struct visible *shown __attribute__((tls_model("initial-exec")));

static enum { NOT_DESCRIBED, DESCRIBED, DESCRIBED_WRONGLY } description; /* by gpus_open */
static void (*report_unknown)(const char *reason);

void gpus_open(const char *text, void (*report)(const char *reason))
{
	report_unknown = report;
	if (text)
		description = topology_environment_read("", text, &topologies) == 0 ? DESCRIBED : DESCRIBED_WRONGLY;
}

/* --- what the driver shows ---------------------------------------------------------------------------------------- */

static bool find_pci(CUdevice device, struct pci_address *pci)
{
	char text[PCI_ADDRESS_TEXT];

	return driver.device_get_pci_bus_id(text, sizeof text, device) == CUDA_SUCCESS &&
	       pci_address_parse(pci, text, NULL) == 0;
}

static bool add_visible(struct visible *visible, int number)
{
	unsigned int place = visible->gpus.count;
	CUdevice device;
	CUuuid uuid;

	if (driver.device_get(&device, number) != CUDA_SUCCESS || !find_pci(device, &visible->gpus.gpus[place]))
		return false;
	visible->uuids[place][0] = '\0';
	if (driver.device_get_uuid && driver.device_get_uuid(&uuid, device) == CUDA_SUCCESS)
		gpu_uuid_format(uuid.bytes, visible->uuids[place]);
	visible->gpus.count++;
	return true;
}

static void find_visible(struct visible *visible)
{
	int count = 0;
	bool found = driver.device_get_count(&count) == CUDA_SUCCESS && count > 0 && count <= TOPOLOGY_GPUS_MAX;

	visible->gpus.count = 0;
	for (int number = 0; number < count && found; number++)
		found = add_visible(visible, number);
	if (!found)
		visible->gpus.count = 0;
}

/* --- their topology ----------------------------------------------------------------------------------------------- */

/* Uses the command's description of the GPUs, from start or attach. False without one, or if a GPU is missing there. */
static bool use_description(void)
{
	const char *text = secure_getenv(TOPOLOGY_ENVIRONMENT);
	bool good = shown->gpus.count > 0 && !topology_named_file() &&
	            (description == DESCRIBED || (description == NOT_DESCRIBED && text &&
	                                          topology_environment_read("", text, &topologies) == 0));

	for (unsigned int i = 0; i < shown->gpus.count && good; i++) {
		const struct topology *gpu = topology_find(&topologies, shown->gpus.gpus[i]);

		good = gpu && strcmp(gpu->uuid, shown->uuids[i]) == 0;
	}
	return good;
}

static struct qmd_mask present_on(const struct topology *topology)
{
	const struct tpcset all = topology_all(topology);
	struct qmd_mask mask = {{0}};

	topology_disable_mask(topology, &all, mask.words, QMD_MASK_BITS);
	for (unsigned int i = 0; i < QMD_MASK_BITS / 64; i++)
		mask.words[i] = ~mask.words[i];
	return mask;
}

static void load_topologies(void)
{
	struct error error;

	if (!use_description() &&
	    topology_load_wanted(shown->gpus.count > 0 ? &shown->gpus : NULL, &topologies, &error) < 0) {
		report_unknown(error.reason);
		topologies.count = 0;
	}
	for (unsigned int i = 0; i < topologies.count; i++) {
		gpus[i].topology = &topologies.gpus[i];
		gpus[i].pci = topologies.gpus[i].pci;
		gpus[i].family = qmd_family_for(topologies.gpus[i].compute_major,
		                                topologies.gpus[i].compute_minor);
		gpus[i].has_masks =
		    gpus[i].family && topology_mask_bits(gpus[i].topology) <= qmd_mask_bits(gpus[i].family);
		gpus[i].present = present_on(gpus[i].topology);
		gpus[i].number = i;
	}
	unknown_gpu->number = TOPOLOGY_GPUS_MAX;
	atomic_store_explicit(&is_loaded, true, memory_order_release);
}

void gpus_prepare(void)
{
	struct visible visible;

	if (atomic_load_explicit(&is_loaded, memory_order_acquire))
		return;
	find_visible(&visible);
	shown = &visible;
	pthread_once(&prepared, load_topologies);
	shown = NULL;
}

bool gpus_some_before_hopper(void)
{
	bool some = false;

	gpus_prepare();
	for (unsigned int i = 0; i < topologies.count; i++)
		some = some || (gpus[i].family && !qmd_shows_must_fit(gpus[i].family));
	return some;
}

static struct gpu *find_gpu(struct pci_address pci)
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
	struct gpu *found = find_pci(device, &pci) ? find_gpu(pci) : NULL;

	return found ? found : unknown_gpu;
}

const struct gpu *gpus_at(struct pci_address pci)
{
	return atomic_load_explicit(&is_loaded, memory_order_acquire) ? find_gpu(pci) : NULL;
}
