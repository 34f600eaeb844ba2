#include "launcher.h"

#include "gpu/kernels.h"
#include "gpu/pci_address.h"
#include "gpu/qmd.h"
#include "state/segment/edit.h"
#include "state/segment/find.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define THREADS 1024
#define CYCLES 20000 /* some ten microseconds: a block runs until the last SM has a block */

/* --- the driver's functions, through our library ------------------------------------------------------------------ */

#define NEEDED(X)                                                                                 \
	X(init, cuInit, (unsigned int flags))                                                     \
	X(error_text, cuGetErrorString, (CUresult error, const char **text))                      \
	X(device_count, cuDeviceGetCount, (int *count))                                           \
	X(device_name, cuDeviceGetName, (char *name, int length, CUdevice device))                \
	X(device_attribute, cuDeviceGetAttribute, (int *value, int attribute, CUdevice device))   \
	X(device_bus_id, cuDeviceGetPCIBusId, (char *text, int length, CUdevice device))          \
	X(context_create, cuCtxCreate_v2, (CUcontext *context, unsigned int flags, CUdevice device)) \
	X(synchronize, cuCtxSynchronize, (void))                                                  \
	X(module_load, cuModuleLoadData, (CUmodule *module, const void *image))                   \
	X(module_function, cuModuleGetFunction, (CUfunction *function, CUmodule module, const char *name)) \
	X(function_set, cuFuncSetAttribute, (CUfunction function, int attribute, int value))      \
	X(allocate, cuMemAlloc_v2, (CUdeviceptr *address, size_t bytes))                          \
	X(copy_to, cuMemcpyHtoD_v2, (CUdeviceptr to, const void *from, size_t bytes))             \
	X(copy_from, cuMemcpyDtoH_v2, (void *to, CUdeviceptr from, size_t bytes))                 \
	X(launch, cuLaunchKernel,                                                                 \
	  (CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z, unsigned int block_x, \
	   unsigned int block_y, unsigned int block_z, unsigned int shared, CUstream stream, void **parameters, \
	   void **extra))

/* NULL if the driver lacks the function: before CUDA 11.8, there are no clusters. */
#define OPTIONAL(X)                                                                                     \
	X(device_uuid, cuDeviceGetUuid, (CUuuid *uuid, CUdevice device))      /* of the whole GPU */        \
	X(instance_uuid, cuDeviceGetUuid_v2, (CUuuid *uuid, CUdevice device)) /* of a MIG instance, or else the GPU */ \
	X(launch_config, cuLaunchKernelEx, \
	  (const CUlaunchConfig *config, CUfunction function, void **parameters, void **extra))

#define MEMBER(member, name, parameters) CUresult(*member) parameters;
#define ROW(member, name, parameters) {#name, &cuda.member},
#define ONE(member, name, parameters) +1

static struct {
	NEEDED(MEMBER)
	OPTIONAL(MEMBER)
} cuda;

static const struct {
	const char *name;
	void *place;
} functions[] = {NEEDED(ROW) OPTIONAL(ROW)};

static int load_library(const char *path, struct error *error)
{
	const size_t needed = 0 NEEDED(ONE);
	void *library = dlopen(path, RTLD_NOW);

	if (!library)
		return error_set(error, "%.300s", dlerror());
	for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
		void *address = dlsym(library, functions[i].name);

		if (!address && i < needed)
			return error_set(error, "the driver library has no %s", functions[i].name);
		if (address)
			memcpy(functions[i].place, &address, sizeof address);
	}
	return 0;
}

/* The failed step, and the reason: always -1. */
static int fail(const char *what, CUresult result, struct error *error)
{
	const char *text = NULL;

	cuda.error_text(result, &text);
	return error_set(error, "%s: CUDA error %d, %s", what, result, text ? text : "without a text");
}

/* --- the GPUs ----------------------------------------------------------------------------------------------------- */

static int attribute(CUdevice device, int number)
{
	int value = 0;

	return cuda.device_attribute(&value, number, device) == CUDA_SUCCESS ? value : 0;
}

static CUuuid ask_uuid(CUresult (*ask)(CUuuid *uuid, CUdevice device), CUdevice device)
{
	CUuuid uuid = {{0}};

	if (!ask || ask(&uuid, device) != CUDA_SUCCESS)
		memset(&uuid, 0, sizeof uuid);
	return uuid;
}

static bool is_none(const CUuuid *uuid)
{
	static const CUuuid none = {{0}};

	return memcmp(uuid, &none, sizeof none) == 0;
}

/* With MIG, CUDA's device is an instance, whose UUID is not its GPU's. */
static bool is_mig_instance(CUdevice device)
{
	CUuuid whole = ask_uuid(cuda.device_uuid, device), instance = ask_uuid(cuda.instance_uuid, device);

	return !is_none(&whole) && !is_none(&instance) && memcmp(&whole, &instance, sizeof whole) != 0;
}

/* Empty if the driver has no UUID. */
static void read_uuid(CUdevice device, char text[TOPOLOGY_UUID_MAX])
{
	CUuuid uuid = ask_uuid(cuda.instance_uuid ? cuda.instance_uuid : cuda.device_uuid, device);

	if (!is_none(&uuid))
		gpu_uuid_format(uuid.bytes, text);
}

/* A GPU with unknown launch descriptors gets one mask bit: in the list, the GPU can be refused later. */
static int describe(CUdevice device, struct topology *gpu, struct error *error)
{
	char bus_id[PCI_ADDRESS_TEXT];
	CUresult result = cuda.device_bus_id(bus_id, sizeof bus_id, device);

	memset(gpu, 0, sizeof *gpu);
	if (result != CUDA_SUCCESS)
		return fail("cuDeviceGetPCIBusId", result, error);
	if (pci_address_parse(&gpu->pci, bus_id, error) < 0)
		return -1;
	cuda.device_name(gpu->name, sizeof gpu->name, device);
	read_uuid(device, gpu->uuid);
	gpu->compute_major = (uint16_t)attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
	gpu->compute_minor = (uint16_t)attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
	const struct qmd_family *family = qmd_family_for(gpu->compute_major, gpu->compute_minor);

	gpu->sms_per_tpc = (uint16_t)topology_sms_per_tpc(gpu->compute_major, gpu->compute_minor);
	gpu->tpc_count = (uint16_t)(family ? qmd_mask_bits(family) : 1);
	gpu->gpc_limit = 1;
	gpu->tpc_limit = gpu->tpc_count;
	for (uint16_t bit = 0; bit < gpu->tpc_count; bit++)
		gpu->tpcs[bit] = (struct topology_tpc){TOPOLOGY_UNKNOWN, TOPOLOGY_UNKNOWN, bit};
	return topology_validate(gpu, error);
}

static int list_gpus(struct topology_list *gpus, struct error *error)
{
	int count = 0, status = 0;
	CUresult result = cuda.init(0);

	if (result == CUDA_SUCCESS)
		result = cuda.device_count(&count);
	if (result != CUDA_SUCCESS)
		return fail("CUDA does not start", result, error);
	gpus->count = 0;
	for (CUdevice device = 0; device < count && device < TOPOLOGY_GPUS_MAX && status == 0; device++)
		status = describe(device, &gpus->gpus[gpus->count++], error);
	topology_sort(gpus);
	return status;
}

/* --- the topology for our library ------------------------------------------------------------------------------ */

/* Makes a memfd and names it in the environment, before the driver has threads that could read the environment. Our
 * library reads the file when the first context is made. */
static FILE *make_file(struct error *error)
{
	char path[64];
	int descriptor = memfd_create("nvtaskset-bits", MFD_CLOEXEC);
	FILE *file = descriptor >= 0 ? fdopen(descriptor, "w") : NULL;

	snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
	if (!file || setenv("NVTASKSET_TOPOLOGY", path, 1) < 0)
		error_set_errno(error, "no file in memory");
	return file;
}

int launcher_start(const char *library, struct topology_list *gpus, struct error *error)
{
	FILE *file = make_file(error);

	if (!file || load_library(library, error) < 0 || list_gpus(gpus, error) < 0)
		return -1;
	return topology_write(gpus, file) == 0 ? 0 : error_set_errno(error, "no file in memory");
}

/* --- a GPU ---------------------------------------------------------------------------------------------------- */

static int find_device(struct pci_address pci, CUdevice *device, struct error *error)
{
	char bus_id[PCI_ADDRESS_TEXT];
	struct pci_address found;
	int count = 0;

	cuda.device_count(&count);
	for (*device = 0; *device < count; (*device)++) {
		if (cuda.device_bus_id(bus_id, sizeof bus_id, *device) == CUDA_SUCCESS &&
		    pci_address_parse(&found, bus_id, NULL) == 0 && pci_address_equal(found, pci))
			return 0;
	}
	return error_set(error, "CUDA has lost it");
}

static int prepare_kernel(struct launcher *launcher, struct error *error)
{
	CUmodule module;
	CUresult result = cuda.module_load(&module, kernels_ptx);

	if (result == CUDA_SUCCESS)
		result = cuda.module_function(&launcher->where, module, "where");
	if (result == CUDA_SUCCESS)
		result = cuda.allocate(&launcher->output, LAUNCHER_BLOCKS_MAX * sizeof(uint32_t));
	/* May fail: a GPU without large clusters refuses the attribute, and will refuse the launch too. */
	if (result == CUDA_SUCCESS)
		cuda.function_set(launcher->where, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1);
	return result == CUDA_SUCCESS ? 0 : fail("the kernel cannot be loaded", result, error);
}

int launcher_open(struct launcher *launcher, const struct topology *gpu, struct error *error)
{
	CUdevice device;

	*launcher = (struct launcher){.gpu = gpu};
	if (!qmd_family_for(gpu->compute_major, gpu->compute_minor))
		return error_set(error, "compute capability %u.%u: its launch descriptors are not known",
		                 gpu->compute_major, gpu->compute_minor);
	if (segment_open(&launcher->segment, getpid(), NULL, NULL) != SEGMENT_FOUND ||
	    !segment_is_at_work(&launcher->segment, getpid()))
		return error_set(error, "this driver does not let launches be restricted; -v says why");
	if (find_device(gpu->pci, &device, error) < 0)
		return -1;
	if (is_mig_instance(device))
		return error_set(error, "MIG is on: only whole GPUs can be partitioned");
	launcher->sm_count = (unsigned int)attribute(device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
	CUresult result = cuda.context_create(&launcher->context, 0, device);

	if (result != CUDA_SUCCESS)
		return fail("no context", result, error);
	return prepare_kernel(launcher, error);
}

/* --- launches ------------------------------------------------------------------------------------------------- */

int launcher_enable(struct launcher *launcher, const struct tpcset *bits, struct error *error)
{
	struct segment_partition partition = {.pci = launcher->gpu->pci, .set = *bits};

	return segment_change(&launcher->segment, &(struct segment_revision){.count = 1, .partitions[0] = partition},
	                      NULL, error);
}

static CUresult launch_clusters(const struct launcher *launcher, unsigned int cluster, unsigned int blocks,
                                void **parameters)
{
	CUlaunchAttribute dimension = {
		.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
		.value.clusterDim = {cluster, 1, 1},
	};
	const CUlaunchConfig config = {
		.gridDimX = blocks,
		.gridDimY = 1,
		.gridDimZ = 1,
		.blockDimX = THREADS,
		.blockDimY = 1,
		.blockDimZ = 1,
		.attrs = &dimension,
		.numAttrs = 1,
	};

	return cuda.launch_config ? cuda.launch_config(&config, launcher->where, parameters, NULL)
	                          : CUDA_ERROR_NOT_SUPPORTED;
}

int launcher_run(struct launcher *launcher, unsigned int cluster, uint32_t sms[LAUNCHER_BLOCKS_MAX],
                 unsigned int *count, struct error *error)
{
	uint64_t cycles = CYCLES;
	void *parameters[] = {&launcher->output, &cycles};
	unsigned int blocks = 4 * launcher->sm_count;

	if (blocks > LAUNCHER_BLOCKS_MAX)
		blocks = LAUNCHER_BLOCKS_MAX;
	*count = cluster > 0 ? blocks / cluster * cluster : blocks;
	/* A block that does not write its SM must leave no SM's number. */
	memset(sms, 0xff, LAUNCHER_BLOCKS_MAX * sizeof *sms);
	CUresult result = cuda.copy_to(launcher->output, sms, *count * sizeof *sms);

	if (result == CUDA_SUCCESS && cluster > 0) {
		result = launch_clusters(launcher, cluster, *count, parameters);
		if (result != CUDA_SUCCESS)
			*count = 0;
		result = CUDA_SUCCESS;
	} else if (result == CUDA_SUCCESS) {
		result = cuda.launch(launcher->where, *count, 1, 1, THREADS, 1, 1, 0, NULL, parameters, NULL);
	}
	if (result == CUDA_SUCCESS)
		result = cuda.synchronize();
	if (result == CUDA_SUCCESS && *count > 0)
		result = cuda.copy_from(sms, launcher->output, *count * sizeof *sms);
	return result == CUDA_SUCCESS ? 0 : fail("a kernel did not run", result, error);
}

int launcher_check(struct launcher *launcher, struct error *error)
{
	struct segment_counters counters;
	int result = 0;

	segment_read_counters(&launcher->segment, &counters);
	for (int reason = 0; reason < SEGMENT_REASON_COUNT && result == 0; reason++) {
		if (counters.reasons[reason] > 0)
			result = error_set(error, "launches cannot be restricted: %s",
			                   segment_reason_text((enum segment_reason)reason));
	}
	return result;
}
