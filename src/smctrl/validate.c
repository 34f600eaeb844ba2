/* libsmctrl: checks where kernels of a stream run. */
#include "libsmctrl.h"

#include "base/driver_names.h"
#include "driver/cuda.h"
#include "gpu/kernels.h"
#include "gpu/topology/topology.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

/* Blocks of the largest size that all GPUs support. Each is busy for CYCLES, to spread the blocks over all SMs. */
#define BLOCKS_PER_SM 4
#define THREADS 1024
#define CYCLES 20000

static struct {
	CUresult (*get_device)(CUdevice *device);
	CUresult (*get_attribute)(int *value, int attribute, CUdevice device);
	CUresult (*load_module)(CUmodule *module, const void *image);
	CUresult (*unload_module)(CUmodule module);
	CUresult (*get_function)(CUfunction *function, CUmodule module, const char *name);
	CUresult (*allocate)(CUdeviceptr *address, size_t bytes);
	CUresult (*release)(CUdeviceptr address);
	CUresult (*copy)(void *to, CUdeviceptr from, size_t bytes);
	CUresult (*synchronise)(CUstream stream);
	CUresult (*launch)(CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
	                   unsigned int block_x, unsigned int block_y, unsigned int block_z,
	                   unsigned int shared_bytes, CUstream stream, void **parameters, void **extra);
} driver;

static bool look_up_driver(void)
{
	static const struct {
		const char *name;
		void **function;
	} functions[] = {
		{"cuCtxGetDevice", (void **)&driver.get_device},
		{"cuDeviceGetAttribute", (void **)&driver.get_attribute},
		{"cuModuleLoadData", (void **)&driver.load_module},
		{"cuModuleUnload", (void **)&driver.unload_module},
		{"cuModuleGetFunction", (void **)&driver.get_function},
		{"cuMemAlloc_v2", (void **)&driver.allocate},
		{"cuMemFree_v2", (void **)&driver.release},
		{"cuMemcpyDtoH_v2", (void **)&driver.copy},
		{"cuStreamSynchronize", (void **)&driver.synchronise},
		{"cuLaunchKernel", (void **)&driver.launch},
	};
	void *library = dlopen(DRIVER_NAME, RTLD_LAZY);
	bool found = library;

	for (size_t i = 0; i < sizeof functions / sizeof functions[0] && found; i++) {
		*functions[i].function = dlsym(library, functions[i].name);
		found = *functions[i].function;
	}
	return found;
}

static bool launch(CUmodule module, CUstream stream, CUdeviceptr output, unsigned int blocks)
{
	uint64_t cycles = CYCLES;
	void *parameters[] = {&output, &cycles};
	CUfunction where;

	return driver.get_function(&where, module, "where") == CUDA_SUCCESS &&
	       driver.launch(where, blocks, 1, 1, THREADS, 1, 1, 0, stream, parameters, NULL) == CUDA_SUCCESS &&
	       driver.synchronise(stream) == CUDA_SUCCESS;
}

static bool run(CUstream stream, uint32_t *sms, unsigned int blocks)
{
	CUdeviceptr output;
	CUmodule module;
	bool done = false;

	if (driver.load_module(&module, kernels_ptx) != CUDA_SUCCESS)
		return false;
	if (driver.allocate(&output, blocks * sizeof *sms) == CUDA_SUCCESS) {
		done = launch(module, stream, output, blocks) &&
		       driver.copy(sms, output, blocks * sizeof *sms) == CUDA_SUCCESS;
		driver.release(output);
	}
	driver.unload_module(module);
	return done;
}

static struct tpcset tpcs_of(const uint32_t *sms, unsigned int blocks, unsigned int sms_per_tpc)
{
	struct tpcset set = {{0}};

	for (unsigned int block = 0; block < blocks; block++)
		tpcset_add(&set, sms[block] / sms_per_tpc);
	return set;
}

/* Finds the TPCs where kernels of the stream run. False if impossible. */
static bool find_out(CUstream stream, struct tpcset *ran)
{
	int sm_count, major, minor;
	CUdevice device;

	if (!look_up_driver() || driver.get_device(&device) != CUDA_SUCCESS ||
	    driver.get_attribute(&sm_count, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device) != CUDA_SUCCESS ||
	    driver.get_attribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device) != CUDA_SUCCESS ||
	    driver.get_attribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device) != CUDA_SUCCESS)
		return false;
	unsigned int blocks = (unsigned int)sm_count * BLOCKS_PER_SM;
	uint32_t *sms = malloc(blocks * sizeof *sms);
	bool done = sms && run(stream, sms, blocks);

	if (done)
		*ran = tpcs_of(sms, blocks, topology_sms_per_tpc((unsigned int)major, (unsigned int)minor));
	free(sms);
	return done;
}

int libsmctrl_validate_stream_mask(void *stream, int low, int high_exclusive, bool echo)
{
	char text[TPCSET_TEXT];
	struct tpcset ran, allowed = {{0}};

	if (low < 0 || low >= high_exclusive || !find_out(stream, &ran))
		return -1;
	tpcset_add_range(&allowed, (unsigned int)low, (unsigned int)high_exclusive - 1);
	if (echo)
		printf("stream %p ran on TPCs %s\n", stream, tpcset_format_list(&ran, text));
	return tpcset_is_subset(&ran, &allowed) ? 0 : -1;
}
