/* libsmctrl: the GPUs of this machine. */
#include "libsmctrl.h"

#include "base/driver_names.h"
#include "driver/cuda.h"
#include "gpu/topology/topology.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct topology_list machine;

/* The TPCs of each GPU's GPCs, in both forms. */
static struct {
	uint32_t gpc_count;
	bool is_narrow; /* all TPC numbers are below 64 */
	uint128_t wide[TOPOLOGY_GPCS_MAX];
	uint64_t narrow[TOPOLOGY_GPCS_MAX];
} gpcs[TOPOLOGY_GPUS_MAX];

/* --- by PCI address ---------------------------------------------------------------------------------------- */

static void list_gpcs(unsigned int number)
{
	gpcs[number].is_narrow = true;
	for (unsigned int gpc = 0; gpc < TOPOLOGY_GPCS_MAX; gpc++) {
		struct tpcset set = topology_gpc(&machine.gpus[number], gpc);
		uint32_t place = gpcs[number].gpc_count;

		if (!tpcset_is_empty(&set)) {
			gpcs[number].wide[place] = (uint128_t)set.words[1] << 64 | set.words[0];
			gpcs[number].narrow[place] = set.words[0];
			gpcs[number].is_narrow = gpcs[number].is_narrow && set.words[1] == 0;
			gpcs[number].gpc_count++;
		}
	}
}

static void load_gpus(void)
{
	if (topology_load(&machine, NULL) < 0)
		machine.count = 0;
	for (unsigned int number = 0; number < machine.count; number++)
		list_gpcs(number);
}

/* NULL without the GPU. */
static const struct topology *find_gpu(int number)
{
	pthread_once(&once, load_gpus);
	return number >= 0 && (unsigned int)number < machine.count ? &machine.gpus[number] : NULL;
}

int libsmctrl_get_tpc_info(uint32_t *num_tpcs, int dev)
{
	const struct topology *gpu = find_gpu(dev);

	if (!gpu)
		return ENODEV;
	*num_tpcs = gpu->tpc_count;
	return 0;
}

int libsmctrl_get_gpc_info_ext(uint32_t *num_enabled_gpcs, uint128_t **tpcs_for_gpc, int dev)
{
	if (!find_gpu(dev))
		return ENODEV;
	if (gpcs[dev].gpc_count == 0)
		return ENOENT;
	*num_enabled_gpcs = gpcs[dev].gpc_count;
	*tpcs_for_gpc = gpcs[dev].wide;
	return 0;
}

int libsmctrl_get_gpc_info(uint32_t *num_enabled_gpcs, uint64_t **tpcs_for_gpc, int dev)
{
	uint128_t *wide;
	uint32_t count;
	int error = libsmctrl_get_gpc_info_ext(&count, &wide, dev);

	if (error != 0)
		return error;
	if (!gpcs[dev].is_narrow)
		return ERANGE;
	*num_enabled_gpcs = count;
	*tpcs_for_gpc = gpcs[dev].narrow;
	return 0;
}

/* --- by CUDA's number -------------------------------------------------------------------------------------- */

static bool find_address(struct pci_address *pci, int ordinal)
{
	void *library = dlopen(DRIVER_NAME, RTLD_LAZY);
	CUresult (*initialise)(unsigned int flags) = library ? dlsym(library, "cuInit") : NULL;
	CUresult (*get_device)(CUdevice *device, int ordinal) = library ? dlsym(library, "cuDeviceGet") : NULL;
	CUresult (*get_address)(char *text, int length, CUdevice device) =
	    library ? dlsym(library, "cuDeviceGetPCIBusId") : NULL;
	char text[PCI_ADDRESS_TEXT];
	CUdevice device;

	return initialise && get_device && get_address && initialise(0) == CUDA_SUCCESS &&
	       get_device(&device, ordinal) == CUDA_SUCCESS && get_address(text, sizeof text, device) == CUDA_SUCCESS &&
	       pci_address_parse(pci, text, NULL) == 0;
}

int libsmctrl_get_tpc_info_cuda(uint32_t *num_tpcs, int cuda_dev)
{
	const struct topology *gpu = NULL;
	struct pci_address pci;

	pthread_once(&once, load_gpus);
	if (find_address(&pci, cuda_dev))
		gpu = topology_find(&machine, pci);
	if (!gpu)
		return ENODEV;
	*num_tpcs = gpu->tpc_count;
	return 0;
}
