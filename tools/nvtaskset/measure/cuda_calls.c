#include "cuda_calls.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

struct cuda_calls cuda;

static const struct function {
	const char *name;
	void *place;
	bool optional;
} functions[] = {
	{"cuInit", &cuda.init, false},
	{"cuGetErrorString", &cuda.error_text, false},
	{"cuDeviceGetCount", &cuda.device_count, false},
	{"cuDeviceGetName", &cuda.device_name, false},
	{"cuDeviceGetAttribute", &cuda.device_attribute, false},
	{"cuDeviceGetPCIBusId", &cuda.device_bus_id, false},
	{"cuDeviceGetUuid", &cuda.device_uuid, true},
	{"cuDeviceGetUuid_v2", &cuda.instance_uuid, true},
	{"cuCtxCreate_v2", &cuda.context_create, false},
	{"cuCtxSynchronize", &cuda.synchronize, false},
	{"cuModuleLoadData", &cuda.module_load, false},
	{"cuModuleGetFunction", &cuda.module_function, false},
	{"cuFuncSetAttribute", &cuda.function_set, false},
	{"cuMemAlloc_v2", &cuda.allocate, false},
	{"cuMemcpyHtoD_v2", &cuda.copy_to, false},
	{"cuMemcpyDtoH_v2", &cuda.copy_from, false},
	{"cuLaunchKernel", &cuda.launch, false},
	{"cuLaunchKernelEx", &cuda.launch_config, true},
};

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

int cuda_load(const char *path, struct error *error)
{
	void *library = dlopen(path, RTLD_NOW);

	if (!library)
		return error_set(error, "%.300s", dlerror());
	for (size_t i = 0; i < COUNT(functions); i++) {
		void *address = dlsym(library, functions[i].name);

		if (!address && !functions[i].optional)
			return error_set(error, "the driver library has no %s", functions[i].name);
		if (address)
			memcpy(functions[i].place, &address, sizeof address);
	}
	return 0;
}

int cuda_fail(const char *what, CUresult result, struct error *error)
{
	const char *text = NULL;

	cuda.error_text(result, &text);
	return error_set(error, "%s: CUDA error %d, %s", what, result, text ? text : "without a text");
}
