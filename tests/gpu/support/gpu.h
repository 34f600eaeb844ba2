/*
 * What the tests do on a GPU, real or simulated: open it, find out where kernels ran, change the partition of
 * this very process.
 *
 * Everything here fails the running cmocka test where it fails.
 */
#ifndef TESTS_GPU_H
#define TESTS_GPU_H

#include "cuda_api.h"
#include "gpu/topology/topology.h"
#include "gpu/tpcset.h"
#include "state/segment.h"

#include <stdbool.h>

/* A function that this driver does not have is NULL. */
#define CUDA_DECLARE(name, number, arguments) extern CUresult(*name) arguments;
CUDA_API(CUDA_DECLARE)
#undef CUDA_DECLARE

/* Looks the driver up as a program does, by its name. */
void gpu_load_driver(void);
bool gpu_is_simulated(void);

/* cuInit and all; how many GPUs there are. */
int gpu_initialise(void);

struct gpu_under_test {
	CUdevice device;
	CUcontext context;
	CUmodule module;
	CUfunction where; /* writes each block's SM id, and is busy for a while */
	CUfunction nothing;
	CUdeviceptr output;
	const struct topology *topology; /* NULL where unknown; what speaks of TPCs needs it */
	unsigned int sm_count;
};

/* Makes a context on GPU `number`, current to this thread. */
void gpu_open(struct gpu_under_test *gpu, int number);
void gpu_close(struct gpu_under_test *gpu);

/* The same in the context that is current, on GPU `number`, which remains when this is closed. */
void gpu_open_current(struct gpu_under_test *gpu, int number);
void gpu_close_current(struct gpu_under_test *gpu);

/* The launches of `where` that reach every SM: blocks of the largest size there is everywhere, of which two fit an
 * SM on most GPUs, busy for so many cycles. */
#define GPU_BLOCKS(gpu) ((gpu)->sm_count * 4)
#define GPU_THREADS 1024
#define GPU_CYCLES 20000

/* Launches so many blocks, waits, and says which TPCs they ran on. Fails where they ran on a
 * TPC, but not on all its SMs. */
struct tpcset gpu_where(const struct gpu_under_test *gpu, CUstream stream);

/* The same launch on the null stream, waited for and not looked at. */
void gpu_run(const struct gpu_under_test *gpu);

/* A launch of one block of a kernel that does nothing; not waited for. */
void gpu_launch_empty(const struct gpu_under_test *gpu);

/* Which SM each block of a launch of `blocks` with these clusters (0: none) ran on. */
void gpu_where_clusters(const struct gpu_under_test *gpu, unsigned int cluster, unsigned int blocks,
                        uint32_t *sms);

/* Eight of these blocks fit an SM of an H200: docs/facts.md, "Launches that never finish", has cooperative launches of
 * that many. */
#define GPU_COOPERATIVE_THREADS 256

/* Just launches; the answer is the driver's. */
CUresult gpu_launch_cooperative(const struct gpu_under_test *gpu, unsigned int blocks);

/* The same from several threads at once, each with an output of its own and the context current; without the
 * check of SMs, which others may keep busy. */
CUdeviceptr gpu_new_output(const struct gpu_under_test *gpu);
struct tpcset gpu_where_into(const struct gpu_under_test *gpu, CUstream stream, CUdeviceptr output);

/* That launch alone, and, after it has run, the TPCs on which its blocks ran. */
void gpu_launch_where(const struct gpu_under_test *gpu, CUstream stream, CUdeviceptr output);
struct tpcset gpu_read_tpcs(const struct gpu_under_test *gpu, CUdeviceptr output, unsigned int blocks);

/* The same launch as a graph's node. The arguments are an output and for how many cycles each block is busy. */
CUDA_KERNEL_NODE_PARAMS gpu_where_node(const struct gpu_under_test *gpu, void **arguments);

/* A conditional node, to be added to `root` or to a graph in it. `value` is what each launch begins with. */
CUgraphNodeParams gpu_conditional_node(const struct gpu_under_test *gpu, CUgraph root, int type, unsigned int bodies,
                                       unsigned int value);

/* A graph whose only node, a child graph, is this one: given up with the call. `node` may be NULL. */
CUgraph gpu_wrap_graph(CUgraph child, CUgraphNode *node);

/* Of this process; for the caller to close. */
struct segment gpu_own_segment(void);

/* The partition of this process on the GPU, from now on. */
void gpu_set_partition(const struct gpu_under_test *gpu, const struct tpcset *set);

/* What it counted so far. */
struct segment_counters gpu_counters(void);

/* Whether it is in force, or a tool has the driver's callbacks. */
bool gpu_is_in_force(void);

struct tpcset gpu_all(const struct gpu_under_test *gpu);
struct tpcset gpu_range(unsigned int first, unsigned int last);
struct tpcset gpu_singletons(const struct gpu_under_test *gpu); /* each alone in its virtual GPC */

void gpu_assert_equal(const struct tpcset *actual, const struct tpcset *expected);

#define gpu_check(call) gpu_check_result(call, #call, __FILE__, __LINE__)
void gpu_check_result(CUresult result, const char *call, const char *file, int line);

/* skip_because() of tests/skip.h. */
_Noreturn void gpu_skip(const char *reason);

#endif
