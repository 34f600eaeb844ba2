#include "functions.h"

#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct driver driver;
static void *opened;

/* A function, and the offset of its pointer in `struct driver`. */
struct function {
	const char *name;
	size_t offset;
};

static const struct function needed[] = {
	{"cuGetExportTable", offsetof(struct driver, get_export_table)},
	{"cuCtxGetCurrent", offsetof(struct driver, context_get_current)},
	{"cuCtxPushCurrent_v2", offsetof(struct driver, context_push)},
	{"cuCtxPopCurrent_v2", offsetof(struct driver, context_pop)},
	{"cuCtxGetDevice", offsetof(struct driver, context_get_device)},
	{"cuDeviceGetCount", offsetof(struct driver, device_get_count)},
	{"cuDeviceGet", offsetof(struct driver, device_get)},
	{"cuDeviceGetPCIBusId", offsetof(struct driver, device_get_pci_bus_id)},
	{"cuFuncGetAttribute", offsetof(struct driver, function_get_attribute)},
	{"cuOccupancyMaxActiveBlocksPerMultiprocessor", offsetof(struct driver, occupancy_blocks)},
};

static const struct function optional[] = {
	{"cuDeviceGetUuid_v2", offsetof(struct driver, device_get_uuid)},
	{"cuDeviceGetAttribute", offsetof(struct driver, device_get_attribute)},
	{"cuFuncGetName", offsetof(struct driver, function_get_name)},
	{"cuStreamIsCapturing", offsetof(struct driver, stream_is_capturing)},
	{"cuDevicePrimaryCtxGetState", offsetof(struct driver, primary_get_state)},
	{"cuDevicePrimaryCtxRetain", offsetof(struct driver, primary_retain)},
	{"cuDevicePrimaryCtxRelease_v2", offsetof(struct driver, primary_release)},
	{"cuMemHostRegister_v2", offsetof(struct driver, memory_register)},
	{"cuMemHostGetDevicePointer_v2", offsetof(struct driver, memory_get_device_pointer)},
	{"cuThreadExchangeStreamCaptureMode", offsetof(struct driver, thread_exchange_capture_mode)},
	{"cuMemGetInfo_v2", offsetof(struct driver, memory_get_info)},
	{"cuPointerGetAttribute", offsetof(struct driver, pointer_get_attribute)},
	{"cuGraphCreate", offsetof(struct driver, graph_create)},
	{"cuGraphDestroy", offsetof(struct driver, graph_destroy)},
	{"cuGraphGetNodes", offsetof(struct driver, graph_get_nodes)},
	{"cuGraphNodeGetType", offsetof(struct driver, graph_node_get_type)},
	{"cuGraphChildGraphNodeGetGraph", offsetof(struct driver, graph_child)},
	{"cuGraphNodeGetEnabled", offsetof(struct driver, graph_node_get_enabled)},
	{"cuGraphNodeSetEnabled", offsetof(struct driver, graph_node_set_enabled)},
	{"cuGraphKernelNodeGetAttribute", offsetof(struct driver, graph_kernel_get_attribute)},
	{"cuGraphMemcpyNodeGetParams", offsetof(struct driver, graph_copy_get_parameters)},
};

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* The linker's symbols for the begin and end of our library. Not dladdr: it would search all symbols of the driver. */
#define OWN __attribute__((visibility("hidden")))
extern const char __ehdr_start[] OWN, _end[] OWN; /* NOLINT(bugprone-reserved-identifier) */

static bool is_ours(const void *address)
{
	return (uintptr_t)address >= (uintptr_t)__ehdr_start && (uintptr_t)address < (uintptr_t)_end;
}

static int resolve(void *library, const struct function *function, struct error *error)
{
	void *address = dlsym(library, function->name);

	if (!address || is_ours(address))
		return error_set(error, "the driver library: it has no %s", function->name);
	memcpy((char *)&driver + function->offset, &address, sizeof address);
	return 0;
}

int driver_resolve(const char *name, struct error *error)
{
	void *library = dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
	int result = 0;

	if (!library)
		return error_set(error, "the driver library: %s is not loaded", name);
	opened = library;
	for (size_t i = 0; i < COUNT(needed) && result == 0; i++)
		result = resolve(library, &needed[i], error);
	for (size_t i = 0; i < COUNT(optional) && result == 0; i++)
		resolve(library, &optional[i], NULL);
	return result;
}

const struct link_map *driver_library(void)
{
	struct link_map *library = NULL;

	return opened && dlinfo(opened, RTLD_DI_LINKMAP, &library) == 0 ? library : NULL;
}

bool driver_can_register(void)
{
	return driver.memory_register && driver.memory_get_device_pointer && driver.thread_exchange_capture_mode;
}

bool driver_captures(CUstream stream)
{
	int status = CU_STREAM_CAPTURE_STATUS_NONE;

	return driver.stream_is_capturing && driver.stream_is_capturing(stream, &status) == CUDA_SUCCESS &&
	       status != CU_STREAM_CAPTURE_STATUS_NONE;
}

bool driver_has_graphs(void)
{
	return driver.graph_create && driver.graph_destroy && driver.graph_get_nodes &&
	       driver.graph_node_get_type && driver.graph_child && driver.graph_node_get_enabled &&
	       driver.graph_node_set_enabled;
}
