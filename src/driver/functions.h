/*
 * The functions of the real driver library that we call.
 *
 * The driver is loaded already: as our dependency, by the name of a link in our directory (facts.md, "Loading"),
 * or, if we were attached, by the program under its own name. We look functions up in that library alone, so that
 * neither a preloaded library nor ours can be mistaken for it.
 *
 * The driver announces these calls like the program's. A thread that is in one says so, so that no tool is told of calls
 * that the program did not make (hook.c). A tool that subscribed before us hears of them all the same, since the driver
 * calls it itself. What the program or the tool calls meanwhile on the same thread, as in a handler of a signal, counts as ours;
 * and a handler that leaves by a jump leaves the mark behind.
 */
#ifndef NVTASKSET_DRIVER_FUNCTIONS_H
#define NVTASKSET_DRIVER_FUNCTIONS_H

#include "base/error.h"
#include "cuda.h"

#include <stdbool.h>

struct driver {
	CUresult (*get_export_table)(const void **table, const CUuuid *id);
	CUresult (*context_get_current)(CUcontext *context);
	CUresult (*context_push)(CUcontext context);
	CUresult (*context_pop)(CUcontext *context);
	CUresult (*context_get_device)(CUdevice *device);
	CUresult (*device_get_count)(int *count);
	CUresult (*device_get)(CUdevice *device, int number);
	CUresult (*device_get_pci_bus_id)(char *text, int length, CUdevice device);
	CUresult (*function_get_attribute)(int *value, int attribute, CUfunction function);
	CUresult (*occupancy_blocks)(int *blocks, CUfunction function, int threads, size_t dynamic_bytes);
	/* From here on, NULL if the driver lacks it. */
	CUresult (*device_get_uuid)(CUuuid *uuid, CUdevice device); /* the MIG instance's, if MIG is on */
	CUresult (*device_get_attribute)(int *value, int attribute, CUdevice device);
	CUresult (*function_get_name)(const char **name, CUfunction function); /* from CUDA 12.3 on */
	CUresult (*stream_is_capturing)(CUstream stream, int *status);
	/* For counting, see driver_can_register. */
	CUresult (*memory_register)(void *start, size_t bytes, unsigned int flags);
	CUresult (*memory_get_device_pointer)(CUdeviceptr *address, void *start, unsigned int flags);
	CUresult (*thread_exchange_capture_mode)(int *mode);
	CUresult (*memory_get_info)(size_t *free_bytes, size_t *total_bytes);
	CUresult (*pointer_get_attribute)(void *value, int attribute, CUdeviceptr address);
	CUresult (*primary_get_state)(CUdevice device, unsigned int *flags, int *is_active);
	CUresult (*primary_retain)(CUcontext *context, CUdevice device);
	CUresult (*primary_release)(CUdevice device); /* from CUDA 11.0 on */
	/* For graphs, see driver_has_graphs. */
	CUresult (*graph_create)(CUgraph *graph, unsigned int flags);
	CUresult (*graph_destroy)(CUgraph graph);
	CUresult (*graph_get_nodes)(CUgraph graph, CUgraphNode *nodes, size_t *count);
	CUresult (*graph_node_get_type)(CUgraphNode node, int *type);
	CUresult (*graph_child)(CUgraphNode node, CUgraph *graph);
	CUresult (*graph_node_get_enabled)(CUgraphExec exec, CUgraphNode node, unsigned int *enabled);
	CUresult (*graph_node_set_enabled)(CUgraphExec exec, CUgraphNode node, unsigned int enabled);
	CUresult (*graph_kernel_get_attribute)(CUgraphNode node, int attribute, CUlaunchAttributeValue *value);
	CUresult (*graph_copy_get_parameters)(CUgraphNode node, CUDA_MEMCPY3D *parameters);
};

/* Filled by driver_resolve; constant afterwards. */
extern struct driver driver;

/* Whether this thread is in one of these calls, of which the program knows nothing. */
bool driver_is_called_by_us(void);

/* -1 with the reason if the library is not loaded, is our own, or lacks a function that we need. */
int driver_resolve(const char *name, struct error *error);

/* The library, as the dynamic linker knows it; NULL before driver_resolve. */
struct link_map;
const struct link_map *driver_library(void);

/* Whether host memory can be registered, also while a stream is being captured (CUDA 10.1). */
bool driver_can_register(void);

/* Whether what goes into this stream is captured, and does not run. False if the driver does not say. */
bool driver_captures(CUstream stream);

/* Whether graphs can be refreshed (cuGraphNodeSetEnabled came with CUDA 11.6). */
bool driver_has_graphs(void);

#endif
