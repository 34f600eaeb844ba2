/*
 * Functions for tests on a GPU, real or simulated: they open it, find out where kernels ran, and change this process's
 * own partition.
 *
 * All of them fail the running cmocka test if they fail.
 */
#ifndef TESTS_GPU_H
#define TESTS_GPU_H

#include "cuda_api.h"
#include "gpu/topology/topology.h"
#include "gpu/tpcset.h"
#include "state/kernels/counts_read.h"
#include "state/segment/segment.h"

#include <stdbool.h>

/* A function that this driver does not have is NULL. */
#define CUDA_DECLARE(name, number, arguments) extern CUresult(*name) arguments;
CUDA_API(CUDA_DECLARE)
#undef CUDA_DECLARE

/* Loads the driver by its name, as a program does. */
void gpu_load_driver(void);
int gpu_load(void **state); /* for cmocka */
bool gpu_is_simulated(void);

/* Loads the driver and calls cuInit. Returns the number of GPUs. */
int gpu_initialise(void);

struct gpu_under_test {
	CUdevice device;
	CUcontext context;
	CUmodule module;
	CUfunction where; /* writes each block's SM id, and is busy for a while */
	CUfunction nothing;
	CUdeviceptr output;
	const struct topology *topology; /* NULL if unknown; functions that deal with TPCs need it */
	unsigned int sm_count;
};

/* Makes a context on GPU `number`, current to this thread. */
void gpu_open(struct gpu_under_test *gpu, int number);
void gpu_close(struct gpu_under_test *gpu);

/* The same in the current context, on GPU `number`; the context stays when this is closed. */
void gpu_open_current(struct gpu_under_test *gpu, int number);
void gpu_close_current(struct gpu_under_test *gpu);

/* Launches of `where` that reach every SM: blocks of the largest size that all GPUs have; two of them fit on an SM on
 * most GPUs. Each is busy for so many cycles. */
#define GPU_BLOCKS(gpu) ((gpu)->sm_count * 4)
#define GPU_THREADS 1024
#define GPU_CYCLES 20000

/* Of so many blocks, in one dimension. */
CUlaunchConfig gpu_config(unsigned int blocks, unsigned int threads, CUstream stream);

/* Launches so many blocks, waits, and returns the TPCs that they ran on. Fails if they ran on a TPC, but not on all its SMs. */
struct tpcset gpu_where(const struct gpu_under_test *gpu, CUstream stream);
void gpu_assert_runs_in(const struct gpu_under_test *gpu, CUstream stream, struct tpcset set);

/* The same launch on the null stream; waits, but does not check where it ran. */
void gpu_run(const struct gpu_under_test *gpu);

CUstream gpu_new_stream(void);

/* Destroyed at the end of the case, by gpu_destroy_streams; 16 at most. */
CUstream gpu_stream_of_case(void);
void gpu_destroy_streams(void);

/* A launch of one block of a kernel that does nothing; not waited for. */
void gpu_launch_empty(const struct gpu_under_test *gpu);

/* On which SM each block ran, of a launch of `blocks` with clusters of this size (0: none); returns the TPCs. */
struct tpcset gpu_where_clusters(const struct gpu_under_test *gpu, unsigned int cluster, unsigned int blocks, uint32_t *sms);

/* Eight of these blocks fit an SM of an H200: facts.md, "Launches that never finish", has cooperative launches of that many. */
#define GPU_COOPERATIVE_THREADS 256
unsigned int gpu_blocks_per_sm(const struct gpu_under_test *gpu);

/* Only launches, and returns the driver's result. */
CUresult gpu_launch_cooperative(const struct gpu_under_test *gpu, unsigned int blocks);

/* Likewise by a call for several devices: for two at most, in a stream of each GPU. */
CUresult gpu_launch_on_devices(const struct gpu_under_test *gpus, const CUstream *theirs, unsigned int count,
                               unsigned int blocks);

/* For several threads at once, each with an output of its own and the context current. SMs are not checked, since
 * others may keep them busy. */
CUdeviceptr gpu_new_output(const struct gpu_under_test *gpu);
struct tpcset gpu_where_into(const struct gpu_under_test *gpu, CUstream stream, CUdeviceptr output);

/* After a launch has run, returns the TPCs on which its blocks ran. On hardware, a client of MPS has SM ids of its own
 * ("SM ids" in docs/reference/mps.md): there, the set has the first TPCs in place of the real ones, and as many. */
struct tpcset gpu_read_tpcs(const struct gpu_under_test *gpu, CUdeviceptr output, unsigned int blocks);

/* The same of SM ids that were copied; UINT32_MAX is none. */
struct tpcset gpu_tpcs_of(const struct gpu_under_test *gpu, const uint32_t *sms, unsigned int blocks);

/* The same launch as a graph's node. The arguments are an output and for how many cycles each block is busy. */
CUDA_KERNEL_NODE_PARAMS gpu_where_node(const struct gpu_under_test *gpu, void **arguments);

/* A conditional node, to be added to `root` or to a graph in it. `value` is what each launch begins with. */
CUgraphNodeParams gpu_conditional_node(const struct gpu_under_test *gpu, CUgraph root, int type, unsigned int bodies,
                                       unsigned int value);

/* A graph of one such node, whose body has this kernel and runs at each launch. */
CUgraph gpu_conditional_graph(const struct gpu_under_test *gpu, const CUDA_KERNEL_NODE_PARAMS *inside);

/* This process's segment; the caller closes it. */
struct segment gpu_own_segment(void);

/* Sets the partition of this process on the GPU. */
void gpu_set_partition(const struct gpu_under_test *gpu, struct tpcset set);

/* This process's counters; how many launches it has counted for this reason; and in all. */
struct segment_counters gpu_counters(void);
uint64_t gpu_counted(enum segment_reason reason);
uint64_t gpu_launches(void);

/* The kernels that this process has counted on the GPU; with the gaps of the GPU and of the process. */
struct counts_of_gpu gpu_kernels(const struct gpu_under_test *gpu);

/* The same, once all of them have ended: nothing says that a count is visible before a synchronisation ends, so this
 * waits for a while. Of the current context, which must be on this GPU. */
struct counts_of_gpu gpu_kernels_at_rest(const struct gpu_under_test *gpu);

/* Whether the partition is in force; false while a tool has the driver's callbacks. */
bool gpu_is_in_force(void);

/* Runs the command of the build directory with these options on this process; its exit status. */
int gpu_nvtaskset(const char *options);

struct tpcset gpu_all(const struct gpu_under_test *gpu);
struct tpcset gpu_range(unsigned int first, unsigned int last);
struct tpcset gpu_first_of(struct tpcset set, unsigned int count);
struct tpcset gpu_singletons(const struct gpu_under_test *gpu); /* each alone in its virtual GPC */

/* Whether a kernel ran on all of `set` and on no other TPC; on no other TPC. Where ids of SMs are a client's own, both
 * compare numbers of TPCs. */
bool gpu_ran_in(struct tpcset ran, struct tpcset set);
bool gpu_ran_inside(struct tpcset ran, struct tpcset set);
void gpu_assert_ran(struct tpcset ran, struct tpcset expected);

#define gpu_check(call) gpu_check_result(call, #call, __FILE__, __LINE__)
void gpu_check_result(CUresult result, const char *call, const char *file, int line);

/* skip_because() of tests/skip.h. */
_Noreturn void gpu_skip(const char *reason);

#endif
