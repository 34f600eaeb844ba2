/*
 * The driver's announcements of calls of its API: the published CUPTI_DRIVER_TRACE_CBID_* numbers, and the layout of
 * the arguments. No further file knows the numbers; memory/memory.c and launch/space/hide.c read a call's first
 * arguments by their place.
 */
#pragma once

#include "frame.h"

/* A call, at the begin or the end. */
struct call {
	int id; /* enum call_id */
	unsigned int wanted_by; /* bits of hook_events' wants_call */
	CUcontext context;
	void **arguments; /* in a row; changes at the begin of the call reach the driver */
	CUresult *result; /* valid at the end of the call; the program gets the value written here */
	struct frame *frame;
};

/* A call in the driver's layout. */
struct call_words {
	uint32_t size; /* in bytes */
	uint64_t unused[4];
	CUresult *result;
	uint64_t also_unused;
	void **arguments;
	CUcontext context;
	uint64_t unused_as_well;
	uint32_t number;
	uint32_t phase; /* 0 at the begin, 1 at the end */
};

enum calls_kind {
	CALLS_LAUNCHES = 1 << 0,    /* a kernel, outside of graphs */
	CALLS_COOPERATIVE = 1 << 1, /* a kernel, with all blocks at once */
	CALLS_BY_CONFIG = 1 << 2,   /* a kernel; attributes may ask for all blocks at once */
	CALLS_POOLS = 1 << 3,       /* memory pools, of managed memory or not */
	CALLS_MANAGED = 1 << 4,     /* memory with pages that move at a touch: managed, or the program's own */
	CALLS_SHARES = 1 << 5,      /* memory or events, between processes */
	CALLS_SYNCHRONIZES = 1 << 6,
	CALLS_CREATES_STREAM = 1 << 7,
	CALLS_DESTROYS_STREAM = 1 << 8,
	CALLS_INSTANTIATES = 1 << 9, /* a graph */
	CALLS_RUNS_GRAPH = 1 << 10,
	CALLS_UPLOADS_GRAPH = 1 << 11,
	CALLS_ADDS_NODE = 1 << 12,
	CALLS_DESTROYS_GRAPH = 1 << 13, /* or an instance, or a node */
	CALLS_WAITS = 1 << 14,      /* makes a stream wait, and not for the stream's own kernels */
	CALLS_PER_THREAD = 1 << 15, /* NULL is the thread's own stream */
	CALLS_EVENT = 1 << 16,      /* the wait is for an event */
	CALLS_MEMORY = 1 << 17,     /* allocates, frees or tells memory of the GPU */
	CALLS_BY_GRID = 1 << 18,    /* launches a function, which has the size of the block */
	CALLS_BLOCKS = 1 << 19,     /* may wait for the GPU; an asynchronous copy does, to pageable memory */
	CALLS_EMPTIES_POOLS = 1 << 20, /* memory pools give unused memory back */
	CALLS_ON_DEVICES = 1 << 21,    /* kernels in streams of several contexts, perhaps without the call's */
};

/* X(name, number, kinds). cuLaunch (OLDEST) launches into the null stream, as cuLaunchGrid does. */
#define CALLS(X)                                                                                     \
	X(DEVICE_GET_ATTRIBUTE, 9, 0)                                                                \
	X(SYNCHRONIZE, 17, CALLS_SYNCHRONIZES | CALLS_BLOCKS | CALLS_EMPTIES_POOLS)                  \
	X(MODULE_LOAD, 18, CALLS_MEMORY)                                                             \
	X(MODULE_LOAD_DATA, 19, CALLS_MEMORY)                                                        \
	X(MODULE_LOAD_DATA_EX, 20, CALLS_MEMORY)                                                     \
	X(MODULE_LOAD_FAT_BINARY, 21, CALLS_MEMORY)                                                  \
	X(ARRAY_DESTROY, 89, CALLS_MEMORY)                                                           \
	X(LAUNCH_OLDEST, 115, CALLS_LAUNCHES | CALLS_BY_GRID)                                        \
	X(LAUNCH_GRID, 116, CALLS_LAUNCHES | CALLS_BY_GRID)                                          \
	X(LAUNCH_GRID_ASYNC, 117, CALLS_LAUNCHES | CALLS_BY_GRID)                                    \
	X(EVENT_SYNCHRONIZE, 121, CALLS_BLOCKS | CALLS_EMPTIES_POOLS)                                \
	X(STREAM_CREATE, 124, CALLS_CREATES_STREAM)                                                  \
	X(STREAM_SYNCHRONIZE, 126, CALLS_SYNCHRONIZES | CALLS_BLOCKS | CALLS_EMPTIES_POOLS)          \
	X(STREAM_DESTROY_OLD, 127, CALLS_DESTROYS_STREAM)                                            \
	X(CONTEXT_SET_LIMIT, 136, CALLS_MEMORY)                                                      \
	X(CONTEXT_CREATE_2, 235, CALLS_MEMORY)                                                       \
	X(MEMORY_GET_INFO, 242, CALLS_MEMORY)                                                        \
	X(ALLOC, 243, CALLS_MEMORY)                                                                  \
	X(ALLOC_PITCH, 244, CALLS_MEMORY)                                                            \
	X(FREE, 245, CALLS_MEMORY)                                                                   \
	X(TOTAL_MEMORY, 259, CALLS_MEMORY)                                                           \
	X(ARRAY_CREATE, 272, CALLS_MEMORY)                                                           \
	X(ARRAY_CREATE_3D, 274, CALLS_MEMORY)                                                        \
	X(COPY_FROM_HOST, 276, CALLS_BLOCKS)                                                         \
	X(COPY_TO_HOST, 278, CALLS_BLOCKS)                                                           \
	X(COPY_TO_HOST_ASYNC, 279, CALLS_BLOCKS)                                                     \
	X(WAIT_EVENT, 295, CALLS_WAITS | CALLS_EVENT)                                                \
	X(COPY, 305, CALLS_BLOCKS)                                                                   \
	X(LAUNCH, 307, CALLS_LAUNCHES)                                                               \
	X(STREAM_DESTROY, 326, CALLS_DESTROYS_STREAM)                                                \
	X(IPC_GET_MEMORY, 328, CALLS_SHARES)                                                         \
	X(IPC_OPEN_MEMORY, 329, CALLS_SHARES)                                                        \
	X(IPC_GET_EVENT, 334, CALLS_SHARES)                                                          \
	X(IPC_OPEN_EVENT, 335, CALLS_SHARES)                                                         \
	X(ADD_CALLBACK, 346, CALLS_WAITS)                                                            \
	X(MIPMAPS_CREATE, 347, CALLS_MEMORY)                                                         \
	X(MIPMAPS_DESTROY, 349, CALLS_MEMORY)                                                        \
	X(STREAM_CREATE_WITH_PRIORITY, 367, CALLS_CREATES_STREAM)                                    \
	X(ALLOC_MANAGED, 371, CALLS_MANAGED | CALLS_MEMORY)                                          \
	X(ATTACH_MEMORY, 377, CALLS_MANAGED)                                                         \
	X(MAX_POTENTIAL_BLOCK_SIZE, 384, 0)                                                          \
	X(PRIMARY_RETAIN, 386, CALLS_MEMORY)                                                         \
	X(COPY_FROM_HOST_PER_THREAD, 397, CALLS_BLOCKS | CALLS_PER_THREAD)                           \
	X(COPY_TO_HOST_PER_THREAD, 398, CALLS_BLOCKS | CALLS_PER_THREAD)                             \
	X(COPY_PER_THREAD, 408, CALLS_BLOCKS | CALLS_PER_THREAD)                                     \
	X(COPY_TO_HOST_ASYNC_PER_THREAD, 422, CALLS_BLOCKS | CALLS_PER_THREAD)                       \
	X(WAIT_EVENT_PER_THREAD, 436, CALLS_WAITS | CALLS_EVENT | CALLS_PER_THREAD)                  \
	X(ADD_CALLBACK_PER_THREAD, 437, CALLS_WAITS | CALLS_PER_THREAD)                              \
	X(ATTACH_MEMORY_PER_THREAD, 438, CALLS_MANAGED | CALLS_PER_THREAD)                           \
	X(STREAM_SYNCHRONIZE_PER_THREAD, 440, CALLS_BLOCKS | CALLS_PER_THREAD | CALLS_EMPTIES_POOLS) \
	X(LAUNCH_PER_THREAD, 442, CALLS_LAUNCHES | CALLS_PER_THREAD)                                 \
	X(MAX_POTENTIAL_BLOCK_SIZE_WITH_FLAGS, 452, 0)                                               \
	X(ADVISE, 457, CALLS_MANAGED)                                                                \
	X(WAIT_VALUE_32, 458, CALLS_WAITS)                                                           \
	X(WAIT_VALUE_32_PER_THREAD, 459, CALLS_WAITS | CALLS_PER_THREAD)                             \
	X(BATCH, 462, CALLS_WAITS)                                                                   \
	X(BATCH_PER_THREAD, 463, CALLS_WAITS | CALLS_PER_THREAD)                                     \
	X(PREFETCH, 467, CALLS_MANAGED)                                                              \
	X(PREFETCH_PER_THREAD, 468, CALLS_MANAGED | CALLS_PER_THREAD)                                \
	X(WAIT_VALUE_64, 473, CALLS_WAITS)                                                           \
	X(WAIT_VALUE_64_PER_THREAD, 474, CALLS_WAITS | CALLS_PER_THREAD)                             \
	X(LAUNCH_COOPERATIVE, 477, CALLS_LAUNCHES | CALLS_COOPERATIVE)                               \
	X(LAUNCH_COOPERATIVE_PER_THREAD, 478, CALLS_LAUNCHES | CALLS_COOPERATIVE | CALLS_PER_THREAD) \
	X(LAUNCH_ON_DEVICES, 480, CALLS_LAUNCHES | CALLS_COOPERATIVE | CALLS_ON_DEVICES)             \
	X(WAIT_SEMAPHORES, 492, CALLS_WAITS)                                                         \
	X(WAIT_SEMAPHORES_PER_THREAD, 493, CALLS_WAITS | CALLS_PER_THREAD)                           \
	X(GRAPH_INSTANTIATE, 513, CALLS_INSTANTIATES)                                                \
	X(GRAPH_LAUNCH, 514, CALLS_RUNS_GRAPH)                                                       \
	X(GRAPH_LAUNCH_PER_THREAD, 515, CALLS_RUNS_GRAPH | CALLS_PER_THREAD)                         \
	X(GRAPH_EXEC_DESTROY, 516, CALLS_DESTROYS_GRAPH)                                             \
	X(GRAPH_DESTROY, 517, CALLS_DESTROYS_GRAPH)                                                  \
	X(GRAPH_NODE_DESTROY, 522, CALLS_DESTROYS_GRAPH)                                             \
	X(HOST_FUNCTION, 527, CALLS_WAITS)                                                           \
	X(HOST_FUNCTION_PER_THREAD, 528, CALLS_WAITS | CALLS_PER_THREAD)                             \
	X(MEMORY_CREATE, 549, CALLS_MEMORY)                                                          \
	X(MEMORY_RELEASE, 550, CALLS_MEMORY)                                                         \
	X(MEMORY_MAP, 551, CALLS_MEMORY)                                                             \
	X(MEMORY_UNMAP, 552, CALLS_MEMORY)                                                           \
	X(EXPORT_MEMORY, 554, CALLS_SHARES)                                                          \
	X(IMPORT_MEMORY, 555, CALLS_SHARES)                                                          \
	X(MEMORY_RETAIN, 565, CALLS_MEMORY)                                                          \
	X(IPC_OPEN_MEMORY_2, 567, CALLS_SHARES)                                                      \
	X(GRAPH_INSTANTIATE_2, 578, CALLS_INSTANTIATES)                                              \
	X(GRAPH_UPLOAD, 580, CALLS_UPLOADS_GRAPH)                                                    \
	X(GRAPH_UPLOAD_PER_THREAD, 581, CALLS_UPLOADS_GRAPH | CALLS_PER_THREAD)                      \
	X(ALLOC_ASYNC, 598, CALLS_MEMORY)                                                            \
	X(ALLOC_ASYNC_PER_THREAD, 599, CALLS_MEMORY | CALLS_PER_THREAD)                              \
	X(FREE_ASYNC, 600, CALLS_MEMORY)                                                             \
	X(FREE_ASYNC_PER_THREAD, 601, CALLS_MEMORY | CALLS_PER_THREAD)                               \
	X(POOL_TRIM, 602, CALLS_MEMORY)                                                              \
	X(POOL_CREATE, 607, CALLS_POOLS | CALLS_MEMORY)                                              \
	X(POOL_DESTROY, 608, CALLS_MEMORY)                                                           \
	X(ALLOC_FROM_POOL, 611, CALLS_MEMORY)                                                        \
	X(ALLOC_FROM_POOL_PER_THREAD, 612, CALLS_MEMORY | CALLS_PER_THREAD)                          \
	X(EXPORT_POOL, 613, CALLS_SHARES)                                                            \
	X(IMPORT_POOL, 614, CALLS_SHARES)                                                            \
	X(GRAPH_ADD_ALLOCATION, 638, CALLS_MEMORY)                                                   \
	X(GRAPH_MEMORY_TRIM, 640, CALLS_MEMORY)                                                      \
	X(GRAPH_INSTANTIATE_WITH_FLAGS, 643, CALLS_INSTANTIATES)                                     \
	X(CONTEXT_CREATE_3, 645, CALLS_MEMORY)                                                       \
	X(LAUNCH_EX, 652, CALLS_LAUNCHES | CALLS_BY_CONFIG)                                          \
	X(LAUNCH_EX_PER_THREAD, 653, CALLS_LAUNCHES | CALLS_BY_CONFIG | CALLS_PER_THREAD)            \
	X(GRAPH_INSTANTIATE_WITH_PARAMS, 656, CALLS_INSTANTIATES)                                    \
	X(GRAPH_INSTANTIATE_WITH_PARAMS_PER_THREAD, 657, CALLS_INSTANTIATES | CALLS_PER_THREAD)      \
	X(WAIT_VALUE_32_2, 659, CALLS_WAITS)                                                         \
	X(WAIT_VALUE_32_2_PER_THREAD, 660, CALLS_WAITS | CALLS_PER_THREAD)                           \
	X(WAIT_VALUE_64_2, 661, CALLS_WAITS)                                                         \
	X(WAIT_VALUE_64_2_PER_THREAD, 662, CALLS_WAITS | CALLS_PER_THREAD)                           \
	X(BATCH_2, 667, CALLS_WAITS)                                                                 \
	X(BATCH_2_PER_THREAD, 668, CALLS_WAITS | CALLS_PER_THREAD)                                   \
	X(MAX_POTENTIAL_CLUSTER_SIZE, 675, 0)                                                        \
	X(MAX_ACTIVE_CLUSTERS, 676, 0)                                                               \
	X(LIBRARY_LOAD_DATA, 678, CALLS_MEMORY)                                                      \
	X(LIBRARY_LOAD, 679, CALLS_MEMORY)                                                           \
	X(GRAPH_NODE_ADD, 712, CALLS_ADDS_NODE | CALLS_MEMORY)                                       \
	X(ADVISE_2, 715, CALLS_MANAGED)                                                              \
	X(PREFETCH_2, 716, CALLS_MANAGED)                                                            \
	X(PREFETCH_2_PER_THREAD, 717, CALLS_MANAGED | CALLS_PER_THREAD)                              \
	X(GRAPH_NODE_ADD_2, 723, CALLS_ADDS_NODE | CALLS_MEMORY)                                     \
	X(CONTEXT_CREATE_4, 757, CALLS_MEMORY)                                                       \
	X(STREAM_CREATE_GREEN, 758, CALLS_CREATES_STREAM)                                            \
	X(PREFETCH_BATCH, 784, CALLS_MANAGED)                                                        \
	X(PREFETCH_BATCH_PER_THREAD, 785, CALLS_MANAGED | CALLS_PER_THREAD)                          \
	X(DISCARD_BATCH, 789, CALLS_MANAGED)                                                         \
	X(DISCARD_BATCH_PER_THREAD, 790, CALLS_MANAGED | CALLS_PER_THREAD)                           \
	X(DISCARD_AND_PREFETCH, 791, CALLS_MANAGED)                                                  \
	X(DISCARD_AND_PREFETCH_PER_THREAD, 792, CALLS_MANAGED | CALLS_PER_THREAD)                    \
	X(SYNCHRONIZE_2, 800, CALLS_BLOCKS | CALLS_EMPTIES_POOLS)                                    \
	X(GET_DEFAULT_POOL, 801, CALLS_POOLS)                                                        \
	X(GET_POOL, 802, CALLS_POOLS)                                                                \
	X(SET_POOL, 803, CALLS_POOLS)

enum call_id {
#define CALLS_ID(name, number, kinds) CALL_##name = (number),
	CALLS(CALLS_ID)
#undef CALLS_ID
	CALLS_MAX = 1024
};

/* --- which calls ---------------------------------------------------------------------------------------------- */

extern const uint32_t calls_kinds[CALLS_MAX] __attribute__((visibility("hidden")));

static inline bool calls_are(int id, unsigned int kinds)
{
	return (unsigned int)id < CALLS_MAX && calls_kinds[id] & kinds;
}

#define CALLS_ARE(name, kinds)           \
	static inline bool name(int id)  \
	{                                \
		return calls_are(id, kinds); \
	}

CALLS_ARE(calls_launch, CALLS_LAUNCHES)
CALLS_ARE(calls_may_launch_at_once, CALLS_COOPERATIVE | CALLS_BY_CONFIG)
CALLS_ARE(calls_launch_on_devices, CALLS_ON_DEVICES)
CALLS_ARE(calls_make_stream_wait, CALLS_WAITS)
CALLS_ARE(calls_wait_for_event, CALLS_EVENT)
CALLS_ARE(calls_share_memory, CALLS_SHARES)
CALLS_ARE(calls_synchronize, CALLS_SYNCHRONIZES)
CALLS_ARE(calls_empty_pools, CALLS_EMPTIES_POOLS)
CALLS_ARE(calls_block, CALLS_BLOCKS)
CALLS_ARE(calls_create_stream, CALLS_CREATES_STREAM)
CALLS_ARE(calls_destroy_stream, CALLS_DESTROYS_STREAM)
CALLS_ARE(calls_instantiate_graph, CALLS_INSTANTIATES)
CALLS_ARE(calls_run_graph, CALLS_RUNS_GRAPH)
CALLS_ARE(calls_use_instance, CALLS_RUNS_GRAPH | CALLS_UPLOADS_GRAPH)
CALLS_ARE(calls_upload_nodes, CALLS_INSTANTIATES | CALLS_RUNS_GRAPH | CALLS_UPLOADS_GRAPH)
CALLS_ARE(calls_add_node, CALLS_ADDS_NODE)
CALLS_ARE(calls_are_of_graphs,
          CALLS_INSTANTIATES | CALLS_RUNS_GRAPH | CALLS_UPLOADS_GRAPH | CALLS_ADDS_NODE | CALLS_DESTROYS_GRAPH)
CALLS_ARE(calls_are_about_memory, CALLS_MEMORY)
CALLS_ARE(calls_may_use_managed_memory, CALLS_MANAGED | CALLS_POOLS)

/* Whether a call, at the begin, is for memory with pages that move at a touch. Looks at a pool's properties. */
bool calls_use_managed_memory(const struct call *call);

/* --- their arguments, in the driver's layout -------------------------------------------------------------------- */

struct call_attribute {
	int *value;
	int attribute;
	CUdevice device;
};

/* Queries of how much runs at once. We change the answer, the first argument. */
struct call_occupancy {
	int *answer;
	CUfunction function;
	const CUlaunchConfig *config; /* only in CALL_MAX_ACTIVE_CLUSTERS */
};

/* Memory of the GPU. An address or a handle is given back where the first argument points. */
struct call_alloc { /* cuMemAlloc, cuMemAllocManaged, cuMemCreate */
	void **made;
	size_t bytes;
	const struct call_place {
		int type, handles;
		int where, number; /* the location */
	} *place; /* of cuMemCreate; second in cuMemPoolCreate */
};

#define CALL_PLACE_DEVICE 1 /* CU_MEM_LOCATION_TYPE_DEVICE: `number` is a device */

struct call_alloc_pitch {
	void **made;
	size_t *pitch;
	size_t width, height;
};

struct call_alloc_from_pool { /* cuMemAllocAsync lacks the pool */
	void **made;
	size_t bytes;
	void *pool;
	CUstream stream;
};

struct call_create_array {
	void **made;
	const struct call_array *array; /* cuArrayCreate has two dimensions */
	unsigned int levels;            /* of cuMipmappedArrayCreate */
};

struct call_create_pool {
	void **made;
	const struct call_place *place;
};

struct call_map {
	void *address;
	size_t bytes, offset;
	void *handle;
};

struct call_retain {
	void **handle;
	void *address;
};

struct call_total_memory {
	size_t *bytes;
	CUdevice device;
};

struct call_memory_info {
	size_t *free, *total;
};

CUdevice calls_device_of_context(const struct call *call);

/* The GPU of the memory that a call creates at a place; -1: no GPU. */
CUdevice calls_device_of_place(const struct call_place *place);

/* The bytes of an array or of all levels, before alignment; 0: the array has no memory of its own. */
uint64_t calls_bytes_of_array(const struct call *call);

/* The pool and the stream of an allocation from a pool; NULL: the device's current pool. */
struct call_alloc_from_pool calls_pool_allocation(const struct call *call);

/* Makes a call for memory or of a graph ask for more than the driver can give: the call fails, without effect. */
void calls_refuse_memory(const struct call *call);

struct call_create_stream {
	CUstream *stream;
};

struct call_destroy_stream {
	CUstream stream;
};

struct call_instantiate {
	CUgraphExec *exec;
	CUgraph graph;
};

/* The flags of an instantiation, CUDA_GRAPH_INSTANTIATE_FLAG_*; 0 if the call has no flags. */
uint64_t calls_instantiate_flags(const struct call *call);

/* Calls that launch, upload or destroy an instance. */
struct call_exec {
	CUgraphExec exec;
};

/* NULL names a stream of every context (cuda.h), which depends on the call. */
static inline CUstream calls_named_stream(CUstream stream, int id)
{
	CUstream null = calls_are(id, CALLS_PER_THREAD) ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;

	return stream ? stream : null;
}

/* The stream of a call that launches a graph; perhaps a stream of every context. */
CUstream calls_stream_of_graph(const struct call *call);

struct call_destroy_graph {
	CUgraph graph;
};

struct call_destroy_node {
	CUgraphNode node;
};

struct call_add_node {
	CUgraphNode *node;
	CUgraph graph;
};

/* The last argument of a call that adds a node. At the end of the call, it has the bodies made by the driver. */
const CUgraphNodeParams *calls_node_parameters(const struct call *call);

/* Reads launch `number` of a call, for all blocks at once. False: the blocks need not run at once. */
struct launch_request {
	CUfunction function;
	CUstream stream;
	struct qmd_shape shape; /* shared memory: the launch's addition to the function's own */
};
bool calls_read_request(const struct call *call, unsigned int number, struct launch_request *request);

/* How many launches a call has: 1, or the length of the list for several devices. 0: the driver refuses the list. */
unsigned int calls_launch_count(const struct call *call);

/* The work of a call that launches a kernel or a graph (calls_launch, calls_run_graph). */
struct launched_work {
	const void *what; /* a function, or the instance of a graph; NULL: no configuration, or on several devices */
	CUstream stream;  /* NULL: several streams */
	unsigned int grid[3]; /* 0: not known, or a graph */
	bool is_graph;
	bool waits_for_others; /* the blocks must run at once, or communicate with other GPUs */
};
struct launched_work calls_read_work(const struct call *call);

/* The stream that a call makes wait; perhaps a stream of every context. */
CUstream calls_waiting_stream(const struct call *call);

/* Makes a launch ask for an empty grid, which the driver refuses. */
void calls_refuse(const struct call *call);

/* The number of blocks in a cluster; 1 if the launch does not ask for clusters. Also 1 if only the function's own
 * attributes ask for clusters: residency.c finds the function's clusters in the descriptor. */
unsigned int calls_cluster_of(const CUlaunchConfig *config);

/* A call begins, or has ended: fills or clears the frame's facts about launches. */
void calls_enter(const struct call *call);
void calls_leave(const struct call *call);
