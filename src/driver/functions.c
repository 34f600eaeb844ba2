#include "functions.h"

#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct driver driver;
static void *opened;

/* Each function: its name in `struct driver`, the driver's name, its parameters and arguments. */
#define NEEDED(X)                                                                                  \
	X(get_export_table, cuGetExportTable, (const void **table, const CUuuid *id), (table, id)) \
	X(context_get_current, cuCtxGetCurrent, (CUcontext *context), (context))                   \
	X(context_push, cuCtxPushCurrent_v2, (CUcontext context), (context))                       \
	X(context_pop, cuCtxPopCurrent_v2, (CUcontext *context), (context))                        \
	X(context_get_device, cuCtxGetDevice, (CUdevice *device), (device))                        \
	X(device_get_count, cuDeviceGetCount, (int *count), (count))                               \
	X(device_get, cuDeviceGet, (CUdevice *device, int number), (device, number))               \
	X(device_get_pci_bus_id, cuDeviceGetPCIBusId,                                              \
	  (char *text, int length, CUdevice device), (text, length, device))                       \
	X(function_get_attribute, cuFuncGetAttribute,                                              \
	  (int *value, int attribute, CUfunction function), (value, attribute, function))          \
	X(occupancy_blocks, cuOccupancyMaxActiveBlocksPerMultiprocessor,                           \
	  (int *blocks, CUfunction function, int threads, size_t dynamic_bytes),                   \
	  (blocks, function, threads, dynamic_bytes))

#define OPTIONAL(X)                                                                                           \
	X(device_get_uuid, cuDeviceGetUuid_v2, (CUuuid *uuid, CUdevice device), (uuid, device))               \
	X(device_get_attribute, cuDeviceGetAttribute,                                                         \
	  (int *value, int attribute, CUdevice device), (value, attribute, device))                           \
	X(function_get_name, cuFuncGetName, (const char **name, CUfunction function), (name, function))       \
	X(stream_is_capturing, cuStreamIsCapturing, (CUstream stream, int *status), (stream, status))         \
	X(primary_get_state, cuDevicePrimaryCtxGetState,                                                      \
	  (CUdevice device, unsigned int *flags, int *is_active), (device, flags, is_active))                 \
	X(primary_retain, cuDevicePrimaryCtxRetain, (CUcontext *context, CUdevice device), (context, device)) \
	X(primary_release, cuDevicePrimaryCtxRelease_v2, (CUdevice device), (device))                         \
	X(memory_register, cuMemHostRegister_v2,                                                              \
	  (void *start, size_t bytes, unsigned int flags), (start, bytes, flags))                             \
	X(memory_get_device_pointer, cuMemHostGetDevicePointer_v2,                                            \
	  (CUdeviceptr *address, void *start, unsigned int flags), (address, start, flags))                   \
	X(thread_exchange_capture_mode, cuThreadExchangeStreamCaptureMode, (int *mode), (mode))               \
	X(memory_get_info, cuMemGetInfo_v2,                                                                   \
	  (size_t *free_bytes, size_t *total_bytes), (free_bytes, total_bytes))                               \
	X(pointer_get_attribute, cuPointerGetAttribute,                                                       \
	  (void *value, int attribute, CUdeviceptr address), (value, attribute, address))                     \
	X(graph_create, cuGraphCreate, (CUgraph *graph, unsigned int flags), (graph, flags))                  \
	X(graph_destroy, cuGraphDestroy, (CUgraph graph), (graph))                                            \
	X(graph_get_nodes, cuGraphGetNodes,                                                                   \
	  (CUgraph graph, CUgraphNode *nodes, size_t *count), (graph, nodes, count))                          \
	X(graph_node_get_type, cuGraphNodeGetType, (CUgraphNode node, int *type), (node, type))               \
	X(graph_child, cuGraphChildGraphNodeGetGraph, (CUgraphNode node, CUgraph *graph), (node, graph))      \
	X(graph_node_get_enabled, cuGraphNodeGetEnabled,                                                      \
	  (CUgraphExec exec, CUgraphNode node, unsigned int *enabled), (exec, node, enabled))                 \
	X(graph_node_set_enabled, cuGraphNodeSetEnabled,                                                      \
	  (CUgraphExec exec, CUgraphNode node, unsigned int enabled), (exec, node, enabled))                  \
	X(graph_kernel_get_attribute, cuGraphKernelNodeGetAttribute,                                          \
	  (CUgraphNode node, int attribute, CUlaunchAttributeValue *value), (node, attribute, value))         \
	X(graph_copy_get_parameters, cuGraphMemcpyNodeGetParams,                                              \
	  (CUgraphNode node, CUDA_MEMCPY3D *parameters), (node, parameters))

/* --- calls of ours -------------------------------------------------------------------------------------------------- */

/* The driver's own functions. */
static struct driver real;

static __thread bool is_called_by_us __attribute__((tls_model("initial-exec")));

bool driver_is_called_by_us(void)
{
	return is_called_by_us;
}

/* Calls may nest: in a callback of the driver's, we call it again. */
#define CALL(member, name, parameters, arguments)        \
	static CUresult call_##member parameters         \
	{                                                \
		bool was_called = is_called_by_us;       \
                                                         \
		is_called_by_us = true;                  \
		CUresult result = real.member arguments; \
                                                         \
		is_called_by_us = was_called;            \
		return result;                           \
	}

NEEDED(CALL)
OPTIONAL(CALL)

#define MEMBER(member, name, parameters, arguments) .member = call_##member,

static const struct driver marked = {NEEDED(MEMBER) OPTIONAL(MEMBER)};

/* --- looking up ----------------------------------------------------------------------------------------------------- */

/* A function, and the offset of its pointer in `struct driver`. */
struct function {
	const char *name;
	size_t offset;
};

#define FUNCTION(member, name, parameters, arguments) {#name, offsetof(struct driver, member)},

static const struct function needed[] = {NEEDED(FUNCTION)};
static const struct function optional[] = {OPTIONAL(FUNCTION)};

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
	memcpy((char *)&real + function->offset, &address, sizeof address);
	memcpy((char *)&driver + function->offset, (const char *)&marked + function->offset, sizeof address);
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
