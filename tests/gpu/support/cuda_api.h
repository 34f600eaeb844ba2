/*
 * The one list of the driver functions that the tests call and the simulator offers: the tests' loader and the simulator's
 * declarations are made from it. Names, types and numbers are the driver API's own; see NVIDIA's documentation of it.
 */
#ifndef TESTS_CUDA_API_H
#define TESTS_CUDA_API_H

#include "driver/cuda.h"

#include <stdbool.h>

typedef struct CUdevResourceDesc_st *CUdevResourceDesc;

enum {
	CUDA_ERROR_DEVICE_UNAVAILABLE = 46,
	CUDA_ERROR_INVALID_IMAGE = 200,
	CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES = 701,
	CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED = 713,
	CUDA_ERROR_NOT_READY = 600,
	CUDA_ERROR_ILLEGAL_STATE = 401,
	CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900,
	CUDA_ERROR_STREAM_CAPTURE_INVALIDATED = 901,
	CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE = 910
};

enum {
	CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 0,
	CU_FUNC_ATTRIBUTE_NUM_REGS = 4,
	CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8
};

enum {
	CU_STREAM_NON_BLOCKING = 1,
	CU_STREAM_WAIT_VALUE_EQ = 1,
	CU_GREEN_CTX_DEFAULT_STREAM = 1,
	CU_DEV_RESOURCE_TYPE_SM = 1,
	CU_STREAM_CAPTURE_MODE_GLOBAL = 0,
	CU_STREAM_CAPTURE_MODE_THREAD_LOCAL = 1,
	CU_GRAPH_COND_ASSIGN_DEFAULT = 1,
	CU_GRAPH_COND_TYPE_IF = 0,
	CU_GRAPH_COND_TYPE_WHILE = 1,
	CU_GRAPH_COND_TYPE_SWITCH = 2,
	CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM = 2
};

typedef struct {
	size_t Width, Height;
	int Format;
	unsigned int NumChannels;
} CUDA_ARRAY_DESCRIPTOR;

typedef struct {
	size_t Width, Height, Depth;
	int Format;
	unsigned int NumChannels, Flags;
} CUDA_ARRAY3D_DESCRIPTOR;

enum {
	CU_AD_FORMAT_FLOAT = 0x20,
	CU_MEM_ALLOCATION_TYPE_PINNED = 1,
	CU_MEM_LOCATION_TYPE_DEVICE = 1
};

typedef struct {
	int type, requestedHandleTypes;
	struct {
		int type, id;
	} location;
	void *win32HandleMetaData;
	unsigned char allocFlags[8];
} CUmemAllocationProp;

typedef struct {
	int allocType, handleTypes;
	struct {
		int type, id;
	} location;
	void *win32SecurityAttributes;
	size_t maxSize;
	unsigned short usage;
	unsigned char reserved[54];
} CUmemPoolProps;

/* The second version, which the driver's _v2 functions take. */
typedef struct {
	CUfunction func;
	unsigned int gridDimX, gridDimY, gridDimZ;
	unsigned int blockDimX, blockDimY, blockDimZ;
	unsigned int sharedMemBytes;
	void **kernelParams;
	void **extra;
	void *kern;
	CUcontext ctx;
} CUDA_KERNEL_NODE_PARAMS;

typedef struct {
	CUdeviceptr dst;
	size_t pitch;
	unsigned int value;
	unsigned int elementSize;
	size_t width; /* elements of a row */
	size_t height;
} CUDA_MEMSET_NODE_PARAMS;

typedef struct {
	uint64_t flags;
	CUstream hUploadStream;
	CUgraphNode hErrNode_out;
	int result_out;
} CUDA_GRAPH_INSTANTIATE_PARAMS;

typedef struct {
	int result;
	CUgraphNode errorNode;
	CUgraphNode errorFromNode;
} CUgraphExecUpdateResultInfo;

typedef struct {
	unsigned int smCount;
	unsigned int minSmPartitionSize;
	unsigned int smCoscheduledAlignment;
} CUdevSmResource;

typedef struct {
	int type;
	unsigned char internal[92]; /* private to the driver */
	union {
		CUdevSmResource sm;
		unsigned char oversize[48];
	};
} CUdevResource;

/* What a launch by a list of arguments has in all its versions. */
#define CUDA_LAUNCH_PARAMETERS                                                                                                     \
	CUfunction function, unsigned int gridX, unsigned int gridY, unsigned int gridZ, unsigned int blockX, unsigned int blockY, \
	    unsigned int blockZ, unsigned int sharedBytes, CUstream stream, void **parameters

/* X(exported name, number of its callbacks in domain 6, parameters). */
#define CUDA_API(X)                                                                                                                \
	X(cuInit, 1, (unsigned int flags))                                                                                         \
	X(cuGetErrorName, 373, (CUresult error, const char **text))                                                                \
	X(cuGetErrorString, 372, (CUresult error, const char **text))                                                              \
	X(cuGetExportTable, 135, (const void **table, const CUuuid *id))                                                           \
	X(cuGetProcAddress_v2, 677, (const char *symbol, void **address, int version, uint64_t flags, int *status))                \
                                                                                                                                   \
	X(cuDeviceGet, 3, (CUdevice *device, int ordinal))                                                                         \
	X(cuDeviceGetCount, 4, (int *count))                                                                                       \
	X(cuDeviceGetName, 5, (char *name, int length, CUdevice device))                                                           \
	X(cuDeviceGetAttribute, 9, (int *value, int attribute, CUdevice device))                                                   \
	X(cuDeviceGetUuid_v2, 647, (CUuuid *uuid, CUdevice device))                                                                \
	X(cuDeviceGetPCIBusId, 332, (char *text, int length, CUdevice device))                                                     \
	X(cuDeviceTotalMem_v2, 259, (size_t *bytes, CUdevice device))                                                              \
                                                                                                                                   \
	X(cuDevicePrimaryCtxRetain, 386, (CUcontext *context, CUdevice device))                                                    \
	X(cuDevicePrimaryCtxRelease_v2, 544, (CUdevice device))                                                                    \
	X(cuDevicePrimaryCtxGetState, 389, (CUdevice device, unsigned int *flags, int *is_active))                                 \
	X(cuCtxCreate_v2, 235, (CUcontext *context, unsigned int flags, CUdevice device))                                          \
	X(cuCtxDestroy_v2, 322, (CUcontext context))                                                                               \
	X(cuCtxPushCurrent_v2, 323, (CUcontext context))                                                                           \
	X(cuCtxPopCurrent_v2, 324, (CUcontext *context))                                                                           \
	X(cuCtxSetCurrent, 303, (CUcontext context))                                                                               \
	X(cuCtxGetCurrent, 304, (CUcontext *context))                                                                              \
	X(cuCtxGetDevice, 16, (CUdevice *device))                                                                                  \
	X(cuCtxSynchronize, 17, (void))                                                                                            \
                                                                                                                                   \
	X(cuModuleLoadData, 19, (CUmodule *module, const void *image))                                                             \
	X(cuModuleUnload, 22, (CUmodule module))                                                                                   \
	X(cuModuleGetFunction, 23, (CUfunction *function, CUmodule module, const char *name))                                      \
	X(cuFuncGetAttribute, 85, (int *value, int attribute, CUfunction function))                                                \
	X(cuFuncGetName, 718, (const char **name, CUfunction function))                                                            \
	X(cuFuncSetAttribute, 481, (CUfunction function, int attribute, int value))                                                \
                                                                                                                                   \
	X(cuMemAlloc_v2, 243, (CUdeviceptr *address, size_t bytes))                                                                \
	X(cuMemFree_v2, 245, (CUdeviceptr address))                                                                                \
	X(cuMemAllocManaged, 371, (CUdeviceptr *address, size_t bytes, unsigned int flags))                                        \
	X(cuMemGetInfo_v2, 242, (size_t *free_bytes, size_t *total_bytes))                                                         \
	X(cuMemAllocPitch_v2, 244, (CUdeviceptr *address, size_t *pitch, size_t width, size_t height, \
	  unsigned int element)) \
	X(cuArrayCreate_v2, 272, (void **array, const CUDA_ARRAY_DESCRIPTOR *description)) \
	X(cuArray3DCreate_v2, 274, (void **array, const CUDA_ARRAY3D_DESCRIPTOR *description)) \
	X(cuArrayDestroy, 89, (void *array)) \
	X(cuMipmappedArrayCreate, 347, (void **array, const CUDA_ARRAY3D_DESCRIPTOR *description, \
	  unsigned int levels)) \
	X(cuMipmappedArrayDestroy, 349, (void *array)) \
	X(cuMemCreate, 549, (uint64_t *handle, size_t bytes, const CUmemAllocationProp *properties, \
	  unsigned long long flags)) \
	X(cuMemRelease, 550, (uint64_t handle)) \
	X(cuMemMap, 551, (CUdeviceptr address, size_t bytes, size_t offset, uint64_t handle, \
	  unsigned long long flags)) \
	X(cuMemUnmap, 552, (CUdeviceptr address, size_t bytes)) \
	X(cuMemRetainAllocationHandle, 565, (uint64_t *handle, void *address)) \
	X(cuMemAddressReserve, 547, (CUdeviceptr *address, size_t bytes, size_t alignment, CUdeviceptr wanted, \
	  unsigned long long flags)) \
	X(cuMemAddressFree, 548, (CUdeviceptr address, size_t bytes)) \
	X(cuMemAllocAsync, 598, (CUdeviceptr *address, size_t bytes, CUstream stream)) \
	X(cuMemAllocAsync_ptsz, 599, (CUdeviceptr *address, size_t bytes, CUstream stream)) \
	X(cuMemFreeAsync, 600, (CUdeviceptr address, CUstream stream)) \
	X(cuMemPoolTrimTo, 602, (void *pool, size_t kept)) \
	X(cuMemPoolSetAttribute, 603, (void *pool, int attribute, void *value)) \
	X(cuMemPoolGetAttribute, 604, (void *pool, int attribute, void *value)) \
	X(cuMemPoolCreate, 607, (void **pool, const CUmemPoolProps *properties)) \
	X(cuMemPoolDestroy, 608, (void *pool)) \
	X(cuDeviceGetMemPool, 610, (void **pool, CUdevice device)) \
	X(cuMemAllocFromPoolAsync, 611, (CUdeviceptr *address, size_t bytes, void *pool, CUstream stream)) \
	X(cuMemAllocFromPoolAsync_ptsz, 612, (CUdeviceptr *address, size_t bytes, void *pool, CUstream stream)) \
	X(cuPointerGetAttribute, 310, (void *value, int attribute, CUdeviceptr address)) \
	X(cuGraphAddMemAllocNode, 638, (CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, \
	  size_t count, struct graph_allocation *parameters)) \
	X(cuGraphMemAllocNodeGetParams, 648, (CUgraphNode node, struct graph_allocation *parameters)) \
	X(cuDeviceGraphMemTrim, 640, (CUdevice device)) \
	X(cuDeviceGetGraphMemAttribute, 641, (CUdevice device, int attribute, void *value)) \
	X(cuIpcGetMemHandle, 328, (void *handle, CUdeviceptr address))                                                             \
	X(cuMemHostRegister_v2, 379, (void *start, size_t bytes, unsigned int flags))                                              \
	X(cuMemHostUnregister, 302, (void *start))                                                                                 \
	X(cuMemHostGetDevicePointer_v2, 247, (CUdeviceptr *address, void *start, unsigned int flags))                              \
	X(cuMemcpyHtoD_v2, 276, (CUdeviceptr to, const void *from, size_t bytes))                                                  \
	X(cuMemcpyDtoH_v2, 278, (void *to, CUdeviceptr from, size_t bytes))                                                        \
	X(cuMemcpyHtoDAsync_v2, 277, (CUdeviceptr to, const void *from, size_t bytes, CUstream stream))                            \
	X(cuMemcpyDtoHAsync_v2, 279, (void *to, CUdeviceptr from, size_t bytes, CUstream stream))                                  \
	X(cuMemsetD8_v2, 249, (CUdeviceptr address, unsigned char value, size_t count))                                            \
	X(cuMemsetD32_v2, 251, (CUdeviceptr address, unsigned int value, size_t count))                                            \
                                                                                                                                   \
	X(cuStreamCreate, 124, (CUstream *stream, unsigned int flags))                                                             \
	X(cuStreamDestroy_v2, 326, (CUstream stream))                                                                              \
	X(cuStreamSynchronize, 126, (CUstream stream))                                                                             \
	X(cuLaunchHostFunc, 527, (CUstream stream, void (*function)(void *), void *data))                                          \
	X(cuStreamWaitEvent, 295, (CUstream stream, CUevent event, unsigned int flags))                                            \
	X(cuStreamWaitValue32_v2, 659, (CUstream stream, CUdeviceptr address, uint32_t value, unsigned int flags))                 \
	X(cuStreamBeginCapture_v2, 539, (CUstream stream, int mode))                                                               \
	X(cuStreamEndCapture, 497, (CUstream stream, CUgraph *graph))                                                              \
	X(cuThreadExchangeStreamCaptureMode, 541, (int *mode))                                                                     \
	X(cuStreamIsCapturing, 499, (CUstream stream, int *status))                                                                \
	X(cuStreamGetCtx, 483, (CUstream stream, CUcontext *context)) \
	X(cuEventCreate, 118, (CUevent *event, unsigned int flags))                                                                \
	X(cuEventDestroy_v2, 325, (CUevent event))                                                                                 \
	X(cuEventRecord, 119, (CUevent event, CUstream stream))                                                                    \
	X(cuEventQuery, 120, (CUevent event))                                                                                      \
	X(cuEventSynchronize, 121, (CUevent event))                                                                                \
                                                                                                                                   \
	X(cuLaunchKernel, 307, (CUDA_LAUNCH_PARAMETERS, void **extra))                                                             \
	X(cuLaunchKernel_ptsz, 442, (CUDA_LAUNCH_PARAMETERS, void **extra))                                                        \
	X(cuLaunchCooperativeKernel, 477, (CUDA_LAUNCH_PARAMETERS))                                                                \
	X(cuLaunchCooperativeKernelMultiDevice, 480, \
	  (CUDA_LAUNCH_PARAMS *list, unsigned int count, unsigned int flags)) \
	X(cuLaunchKernelEx, 652, (const CUlaunchConfig *config, CUfunction function, void **parameters, void **extra))             \
	X(cuLaunchKernelEx_ptsz, 653, (const CUlaunchConfig *config, CUfunction function, void **parameters, void **extra))        \
	X(cuOccupancyMaxActiveBlocksPerMultiprocessor, 374, (int *blocks, CUfunction function, int threads, size_t sharedBytes))   \
	X(cuOccupancyMaxActiveClusters, 676, (int *clusters, CUfunction function, const CUlaunchConfig *config))                   \
	X(cuOccupancyMaxPotentialClusterSize, 675, (int *blocks, CUfunction function, const CUlaunchConfig *config))               \
	X(cuOccupancyMaxPotentialBlockSize, 384, (int *blocks, int *threads, CUfunction function, void *to_shared_bytes,           \
	  size_t shared_bytes, int limit))                                                                                         \
                                                                                                                                   \
	X(cuGraphCreate, 501, (CUgraph *graph, unsigned int flags))                                                                \
	X(cuGraphDestroy, 517, (CUgraph graph))                                                                                    \
	X(cuGraphClone, 523, (CUgraph *clone, CUgraph original))                                                                   \
	X(cuGraphGetNodes, 534, (CUgraph graph, CUgraphNode *nodes, size_t *count))                                                \
	X(cuGraphNodeGetType, 509, (CUgraphNode node, int *type))                                                                  \
	X(cuGraphAddKernelNode_v2, 689, (CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, size_t count,          \
	  const CUDA_KERNEL_NODE_PARAMS *parameters))                                                                              \
	X(cuGraphAddChildGraphNode, 525, (CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, size_t count,         \
	  CUgraph child))                                                                                                          \
	X(cuGraphChildGraphNodeGetGraph, 529, (CUgraphNode node, CUgraph *graph))                                                  \
	X(cuGraphAddMemsetNode, 506, (CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, size_t count,             \
	  const CUDA_MEMSET_NODE_PARAMS *parameters, CUcontext context))                                                           \
	X(cuGraphAddMemcpyNode, 504, (CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, size_t count,             \
	  const CUDA_MEMCPY3D *parameters, CUcontext context))                                                                     \
	X(cuGraphMemcpyNodeGetParams, 505, (CUgraphNode node, CUDA_MEMCPY3D *parameters))                                          \
	X(cuGraphConditionalHandleCreate, 722, (CUgraphConditionalHandle *handle, CUgraph graph, CUcontext context,                \
	  unsigned int value, unsigned int flags))                                                                                 \
	X(cuGraphAddNode, 712, (CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, size_t count,                   \
	  CUgraphNodeParams *parameters))                                                                                          \
	X(cuGraphAddNode_v2, 723, (CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, const void *edges,           \
	  size_t count, CUgraphNodeParams *parameters))                                                                            \
	X(cuGraphDestroyNode, 522, (CUgraphNode node))                                                                             \
	X(cuGraphKernelNodeGetAttribute, 570, (CUgraphNode node, int attribute, CUlaunchAttributeValue *value))                    \
	X(cuGraphKernelNodeSetAttribute, 571, (CUgraphNode node, int attribute, const CUlaunchAttributeValue *value))              \
	X(cuGraphInstantiateWithParams, 656, (CUgraphExec *exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *parameters))        \
	X(cuGraphInstantiateWithFlags, 643, (CUgraphExec *exec, CUgraph graph, unsigned long long flags))                          \
	X(cuGraphExecDestroy, 516, (CUgraphExec exec))                                                                             \
	X(cuGraphUpload, 580, (CUgraphExec exec, CUstream stream))                                                                 \
	X(cuGraphLaunch, 514, (CUgraphExec exec, CUstream stream))                                                                 \
	X(cuGraphUpload_ptsz, 581, (CUgraphExec exec, CUstream stream)) \
	X(cuGraphLaunch_ptsz, 515, (CUgraphExec exec, CUstream stream)) \
	X(cuGraphExecUpdate_v2, 696, (CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *info))                         \
	X(cuGraphExecKernelNodeSetParams_v2, 692, (CUgraphExec exec, CUgraphNode node,                                             \
	  const CUDA_KERNEL_NODE_PARAMS *parameters))                                                                              \
	X(cuGraphNodeSetEnabled, 650, (CUgraphExec exec, CUgraphNode node, unsigned int enabled))                                  \
	X(cuGraphNodeGetEnabled, 651, (CUgraphExec exec, CUgraphNode node, unsigned int *enabled))                                 \
                                                                                                                                   \
	X(cuDeviceGetDevResource, 745, (CUdevice device, CUdevResource *resource, int type))                                       \
	X(cuDevSmResourceSplitByCount, 751, (CUdevResource *groups, unsigned int *count, const CUdevResource *input,               \
	  CUdevResource *remaining, unsigned int flags, unsigned int smallest))                                                    \
	X(cuDevResourceGenerateDesc, 748, (CUdevResourceDesc *description, CUdevResource *resources, unsigned int count))          \
	X(cuGreenCtxCreate, 743, (CUgreenCtx *green, CUdevResourceDesc description, CUdevice device, unsigned int flags))          \
	X(cuGreenCtxDestroy, 744, (CUgreenCtx green))                                                                              \
	X(cuCtxFromGreenCtx, 753, (CUcontext *context, CUgreenCtx green))                                                          \
	X(cuGreenCtxStreamCreate, 758, (CUstream *stream, CUgreenCtx green, unsigned int flags, int priority))

#endif
