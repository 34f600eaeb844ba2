#include "context.h"

#include "faults.h"
#include "hook.h"
#include "memory.h"
#include "rm.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char simulated_gpu[] = "tests/sim";

static struct topology_list topologies;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic pid_t initialised; /* the process that called cuInit */

/* --- initialisation ------------------------------------------------------------------------------- */

static void load_topologies(void)
{
	const char *path = getenv("SIM_TOPOLOGY");
	struct error error;

	if (!path || !*path)
		path = getenv("NVTASKSET_TOPOLOGY");
	if (!path || !*path)
		fatal("neither SIM_TOPOLOGY nor NVTASKSET_TOPOLOGY names a topology file");
	FILE *file = fopen(path, "re");

	if (!file)
		fatal("%s: cannot be opened", path);
	if (topology_read(&topologies, file, path, &error) < 0)
		fatal("%s", error.reason);
	fclose(file);
}

CUresult cuInit(unsigned int flags)
{
	CUresult result = CUDA_SUCCESS;

	if (flags != 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (fault(FAULT_NO_DEVICE))
		return CUDA_ERROR_NO_DEVICE;
	pthread_mutex_lock(&lock);
	if (atomic_load(&initialised) == 0) {
		load_topologies();
		rm_open(topologies.count);
		atomic_store(&initialised, getpid());
	} else {
		result = device_ready();
	}
	pthread_mutex_unlock(&lock);
	return result;
}

CUresult device_ready(void)
{
	return atomic_load(&initialised) == getpid() ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

/* --- questions -------------------------------------------------------------------------------------- */

const struct topology *device_topology(CUdevice device)
{
	bool present = device_ready() == CUDA_SUCCESS && device >= 0 && (unsigned int)device < topologies.count;

	return present ? &topologies.gpus[device] : NULL;
}

/* The error for a device that does not exist. */
static CUresult no_such_device(void)
{
	CUresult ready = device_ready();

	return ready == CUDA_SUCCESS ? CUDA_ERROR_INVALID_DEVICE : ready;
}

CUresult cuDeviceGetCount(int *count)
{
	CUresult ready = device_ready();

	*count = ready == CUDA_SUCCESS ? (int)topologies.count : 0;
	return ready;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
	*device = ordinal;
	return device_topology(ordinal) ? CUDA_SUCCESS : no_such_device();
}

static CUresult copy_text(char *to, int length, const char *from)
{
	if (length <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	snprintf(to, (size_t)length, "%s", from);
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int length, CUdevice device)
{
	const struct topology *gpu = device_topology(device);

	return gpu ? copy_text(name, length, gpu->name) : no_such_device();
}

CUresult cuDeviceGetPCIBusId(char *text, int length, CUdevice device)
{
	const struct topology *gpu = device_topology(device);
	char pci[PCI_ADDRESS_TEXT];

	return gpu ? copy_text(text, length, pci_address_format(gpu->pci, pci)) : no_such_device();
}

HOOKED_2(cuDeviceTotalMem_v2, size_t *, bytes, CUdevice, device)
{
	*bytes = DEVICE_MEMORY_BYTES;
	return device_topology(device) ? CUDA_SUCCESS : no_such_device();
}

HOOKED_3(cuDeviceGetAttribute, int *, value, int, attribute, CUdevice, device)
{
	const struct topology *gpu = device_topology(device);
	CUresult result = CUDA_ERROR_INVALID_VALUE;

	if (!gpu)
		return no_such_device();
	const struct {
		int attribute, value;
	} known[] = {
		{CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, gpu->tpc_count * gpu->sms_per_tpc},
		{CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, gpu->pci.bus},
		{CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, gpu->pci.device},
		{CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, (int)gpu->pci.domain},
		{CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, gpu->compute_major},
		{CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, gpu->compute_minor},
		{CU_DEVICE_ATTRIBUTE_INTEGRATED, fault(FAULT_INCOHERENT)},
		{CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, fault(FAULT_PAGEABLE)},
		{CU_DEVICE_ATTRIBUTE_MPS_ENABLED, !fault(FAULT_TIME_SLICES)},
	};

	for (size_t i = 0; i < sizeof known / sizeof known[0] && value; i++) {
		if (known[i].attribute == attribute) {
			*value = known[i].value;
			result = CUDA_SUCCESS;
		}
	}
	return result;
}

/* "GPU-01234567-89ab-…": the digits after the first dash. */
static void parse_uuid(const char *text, CUuuid *uuid)
{
	const char *digits = strchr(text, '-');

	memset(uuid, 0, sizeof *uuid);
	for (unsigned int digit = 0; digits && *digits && digit < 2 * sizeof uuid->bytes; digits++) {
		static const char hexadecimal[] = "0123456789abcdef";
		const char *found = strchr(hexadecimal, *digits);

		if (found) {
			uuid->bytes[digit / 2] |= (unsigned char)((found - hexadecimal) << (digit % 2 ? 0 : 4));
			digit++;
		}
	}
}

CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device)
{
	const struct topology *gpu = device_topology(device);
	char invented[TOPOLOGY_UUID_MAX];

	if (!gpu)
		return no_such_device();
	/* For files without UUIDs: every GPU gets one of its own. */
	snprintf(invented, sizeof invented, "GPU-00000000-0000-0000-0001-%08x%02x%02x", gpu->pci.domain, gpu->pci.bus, gpu->pci.device);
	parse_uuid(gpu->uuid[0] ? gpu->uuid : invented, uuid);
	return CUDA_SUCCESS;
}
