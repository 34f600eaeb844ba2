/*
 * The functions of the real driver library that we call.
 *
 * The driver is loaded already: as our dependency, by the name of a link in our directory (facts.md, "Loading"); or,
 * after an attach, by the program under the driver's own name. We look functions up in the driver library alone:
 * neither a preloaded library nor ours can be mistaken for the driver.
 *
 * The driver announces our calls like the program's. The calling thread is marked, so that no tool is told of a call
 * that the program did not make (hook.c). A tool that subscribed before us hears of our calls all the same: the driver
 * calls the tool directly. A call of the program or the tool inside ours on the same thread, as in a handler of a
 * signal, counts as ours; and a handler that leaves by a jump leaves the mark behind.
 */
#pragma once

#include "base/error.h"
#include "cuda.h"

#include <stdbool.h>

/* Each function: the name in `struct driver`, the driver's name, the parameters and the arguments. An optional function
 * is NULL if the driver lacks the function. */
#define DRIVER_NEEDED(X)                                                                           \
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

#define DRIVER_OPTIONAL(X)                                                                                             \
	X(device_get_uuid, cuDeviceGetUuid_v2, (CUuuid *uuid, CUdevice device), (uuid, device))                        \
	X(device_get_attribute, cuDeviceGetAttribute,                                                                  \
	  (int *value, int attribute, CUdevice device), (value, attribute, device))                                    \
	X(function_get_name, cuFuncGetName, (const char **name, CUfunction function), (name, function))                \
	X(stream_is_capturing, cuStreamIsCapturing, (CUstream stream, int *status), (stream, status))                  \
	X(stream_get_context, cuStreamGetCtx, (CUstream stream, CUcontext *context), (stream, context))                \
	X(primary_get_state, cuDevicePrimaryCtxGetState,                                                               \
	  (CUdevice device, unsigned int *flags, int *is_active), (device, flags, is_active))                          \
	X(primary_retain, cuDevicePrimaryCtxRetain, (CUcontext *context, CUdevice device), (context, device))          \
	X(primary_release, cuDevicePrimaryCtxRelease_v2, (CUdevice device), (device))                                  \
	X(memory_register, cuMemHostRegister_v2,                                                                       \
	  (void *start, size_t bytes, unsigned int flags), (start, bytes, flags))                                      \
	X(memory_get_device_pointer, cuMemHostGetDevicePointer_v2,                                                     \
	  (CUdeviceptr *address, void *start, unsigned int flags), (address, start, flags))                            \
	X(thread_exchange_capture_mode, cuThreadExchangeStreamCaptureMode, (int *mode), (mode))                        \
	X(memory_get_info, cuMemGetInfo_v2, (size_t *free_bytes, size_t *total_bytes), (free_bytes, total_bytes))      \
	X(pointer_get_attribute, cuPointerGetAttribute,                                                                \
	  (void *value, int attribute, CUdeviceptr address), (value, attribute, address))                              \
	X(memory_get_pool, cuDeviceGetMemPool, (void **pool, CUdevice device), (pool, device))                         \
	X(pool_get_attribute, cuMemPoolGetAttribute, (void *pool, int attribute, void *to), (pool, attribute, to)) \
	X(pool_trim, cuMemPoolTrimTo, (void *pool, size_t kept), (pool, kept))                                         \
	X(graph_memory_get_attribute, cuDeviceGetGraphMemAttribute,                                                    \
	  (CUdevice device, int attribute, void *value), (device, attribute, value))                                   \
	X(graph_memory_trim, cuDeviceGraphMemTrim, (CUdevice device), (device))                                        \
	X(graph_allocation_get_parameters, cuGraphMemAllocNodeGetParams,                                               \
	  (CUgraphNode node, struct graph_allocation *parameters), (node, parameters))                                 \
	X(graph_create, cuGraphCreate, (CUgraph *graph, unsigned int flags), (graph, flags))                           \
	X(graph_destroy, cuGraphDestroy, (CUgraph graph), (graph))                                                     \
	X(graph_get_nodes, cuGraphGetNodes, (CUgraph graph, CUgraphNode *nodes, size_t *count), (graph, nodes, count)) \
	X(graph_node_get_type, cuGraphNodeGetType, (CUgraphNode node, int *type), (node, type))                        \
	X(graph_child, cuGraphChildGraphNodeGetGraph, (CUgraphNode node, CUgraph *graph), (node, graph))               \
	X(graph_node_get_enabled, cuGraphNodeGetEnabled,                                                               \
	  (CUgraphExec exec, CUgraphNode node, unsigned int *enabled), (exec, node, enabled))                          \
	X(graph_node_set_enabled, cuGraphNodeSetEnabled,                                                               \
	  (CUgraphExec exec, CUgraphNode node, unsigned int enabled), (exec, node, enabled))                           \
	X(graph_kernel_get_attribute, cuGraphKernelNodeGetAttribute,                                                   \
	  (CUgraphNode node, int attribute, CUlaunchAttributeValue *value), (node, attribute, value))                  \
	X(graph_copy_get_parameters, cuGraphMemcpyNodeGetParams,                                                       \
	  (CUgraphNode node, CUDA_MEMCPY3D *parameters), (node, parameters))

struct driver {
#define DRIVER_MEMBER(member, name, parameters, arguments) CUresult(*member) parameters;
	DRIVER_NEEDED(DRIVER_MEMBER) DRIVER_OPTIONAL(DRIVER_MEMBER)
#undef DRIVER_MEMBER
};

/* Filled by driver_resolve; constant afterwards. */
extern struct driver driver;

/* Whether this thread is in a call of ours, unknown to the program. */
bool driver_is_called_by_us(void);

/* -1 with the reason if the library is not loaded, is our own, or lacks a needed function. */
int driver_resolve(const char *name, struct error *error);

/* The library's entry in the dynamic linker; NULL before driver_resolve. */
struct link_map;
const struct link_map *driver_library(void);

/* Whether host memory can be registered, also while a stream is being captured (CUDA 10.1). */
bool driver_can_register(void);

/* Whether work for the stream is captured, and does not run. False if the driver does not say. */
bool driver_captures(CUstream stream);

/* Whether graphs can be refreshed (cuGraphNodeSetEnabled came with CUDA 11.6). */
bool driver_has_graphs(void);
