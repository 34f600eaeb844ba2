/*
 * The refresh of graphs relies on this: a node that was disabled and enabled again always runs at the next launch,
 * whatever its kind, also while other threads do the same to their graphs, and also if the application itself disables
 * and enables a node after the instance's first launch. (The driver can lose a node for good that is disabled before
 * that: docs/hardware.md.) Each test runs for SOAK_SECONDS.
 *
 * Runs without nvtaskset: failures are the driver's.
 */
#include "support/gpu.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define THREADS 8
#define NODES 4
#define BLOCKS 16
#define PORTABLE_CLUSTER 8
#define LAUNCHES 40 /* of an instance */
#define NOT_WRITTEN UINT32_MAX

static struct gpu_under_test gpu;
static _Atomic uint64_t launched, lost;
static atomic_bool over;
static bool application_disables; /* the first node, for a while */

struct kind {
	unsigned int cluster; /* 0: none */
	bool is_cooperative;
};

struct instance {
	struct kind kinds[NODES];
	bool is_wrapped; /* the nodes lie in a child graph */
	CUgraph graph;
	CUgraphNode nodes[NODES];
	CUgraphExec exec;
	bool first_is_disabled;
};

struct worker {
	unsigned int number;
	CUstream stream;
	CUdeviceptr outputs; /* BLOCKS words for each node */
	unsigned int random;
};

static CUdeviceptr output(const struct worker *worker, unsigned int node)
{
	return worker->outputs + node * BLOCKS * sizeof(uint32_t);
}

static struct kind random_kind(struct worker *worker)
{
	unsigned int kind = gpu.topology->compute_major < 9 ? 0 : (unsigned int)rand_r(&worker->random) % 6;

	return (struct kind){.cluster = kind >= 2 ? 1u << (kind - 1) : 0, .is_cooperative = kind == 1};
}

static void launch(const struct worker *worker, unsigned int node, struct kind kind)
{
	CUdeviceptr to = output(worker, node);
	uint64_t cycles = 0;
	void *parameters[] = {&to, &cycles};
	CUlaunchAttribute cluster = {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, .value.clusterDim = {kind.cluster, 1, 1}};
	CUlaunchAttribute cooperative = {.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value.cooperative = 1};
	const CUlaunchConfig config = {.gridDimX = BLOCKS, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 32, .blockDimY = 1,
	                               .blockDimZ = 1, .hStream = worker->stream,
	                               .attrs = kind.cluster ? &cluster : &cooperative,
	                               .numAttrs = kind.cluster || kind.is_cooperative};

	gpu_check(cuLaunchKernelEx(&config, gpu.where, parameters, NULL));
}

/* Finds the nodes in the order in which they were captured. */
static void find_nodes(struct instance *instance)
{
	CUgraph inner = instance->graph;
	size_t count = NODES;

	if (instance->is_wrapped) {
		CUgraphNode child;
		size_t one = 1;

		gpu_check(cuGraphGetNodes(instance->graph, &child, &one));
		gpu_check(cuGraphChildGraphNodeGetGraph(child, &inner));
	}
	gpu_check(cuGraphGetNodes(inner, instance->nodes, &count));
	assert_int_equal(count, NODES);
}

static struct instance make(struct worker *worker)
{
	struct instance instance = {.is_wrapped = rand_r(&worker->random) % 2};

	gpu_check(cuStreamBeginCapture_v2(worker->stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	for (unsigned int node = 0; node < NODES; node++) {
		instance.kinds[node] = random_kind(worker);
		launch(worker, node, instance.kinds[node]);
	}
	gpu_check(cuStreamEndCapture(worker->stream, &instance.graph));
	if (instance.is_wrapped)
		instance.graph = gpu_wrap_graph(instance.graph, NULL);
	gpu_check(cuGraphInstantiateWithFlags(&instance.exec, instance.graph, 0));
	find_nodes(&instance);
	return instance;
}

static void destroy(const struct instance *instance)
{
	gpu_check(cuGraphExecDestroy(instance->exec));
	gpu_check(cuGraphDestroy(instance->graph));
}

static bool is_disabled(const struct instance *instance, unsigned int node)
{
	return node == 0 && instance->first_is_disabled;
}

/* For a cluster that is not portable, the driver returns an error, but disables the node (docs/hardware.md). */
static void disable(const struct instance *instance, unsigned int node)
{
	CUresult result = cuGraphNodeSetEnabled(instance->exec, instance->nodes[node], 0);

	assert_true(result == CUDA_SUCCESS || result == CUDA_ERROR_INVALID_CLUSTER_SIZE);
}

static void enable(const struct instance *instance, unsigned int node)
{
	gpu_check(cuGraphNodeSetEnabled(instance->exec, instance->nodes[node], 1));
}

static void toggle(const struct instance *instance)
{
	for (unsigned int node = 0; node < NODES; node++) {
		if (!is_disabled(instance, node)) {
			disable(instance, node);
			enable(instance, node);
		}
	}
}

/* Not for a cooperative node: the next launch would fail. Not for a cluster that is not portable (docs/hardware.md). */
static void switch_first(struct instance *instance)
{
	if (instance->kinds[0].is_cooperative || instance->kinds[0].cluster > PORTABLE_CLUSTER)
		return;
	if (instance->first_is_disabled)
		enable(instance, 0);
	else
		disable(instance, 0);
	instance->first_is_disabled = !instance->first_is_disabled;
}

static void report(const struct worker *worker, const struct instance *instance, unsigned int node, unsigned int round,
                   unsigned int missing)
{
	fprintf(stderr, "# thread %u, launch %u of an instance%s: %s node %u (clusters of %u%s): %u of %u blocks did not run\n",
	        worker->number, round, instance->is_wrapped ? " with a child graph" : "",
	        is_disabled(instance, node) ? "disabled" : "enabled", node, instance->kinds[node].cluster,
	        instance->kinds[node].is_cooperative ? ", cooperative" : "", missing, BLOCKS);
	lost++;
}

static void launch_and_look(struct worker *worker, const struct instance *instance, unsigned int round)
{
	static const uint32_t none[NODES][BLOCKS] = {[0 ... NODES - 1] = {[0 ... BLOCKS - 1] = NOT_WRITTEN}};
	uint32_t sms[NODES][BLOCKS];

	gpu_check(cuMemcpyHtoDAsync_v2(worker->outputs, none, sizeof none, worker->stream));
	gpu_check(cuGraphLaunch(instance->exec, worker->stream));
	gpu_check(cuMemcpyDtoHAsync_v2(sms, worker->outputs, sizeof sms, worker->stream));
	gpu_check(cuStreamSynchronize(worker->stream));
	for (unsigned int node = 0; node < NODES; node++) {
		unsigned int missing = 0;

		for (unsigned int block = 0; block < BLOCKS; block++)
			missing += sms[node][block] == NOT_WRITTEN;
		if (missing != (is_disabled(instance, node) ? BLOCKS : 0))
			report(worker, instance, node, round, missing);
	}
	launched++;
}

static void *work(void *data)
{
	struct worker *worker = data;

	gpu_check(cuCtxSetCurrent(gpu.context));
	gpu_check(cuStreamCreate(&worker->stream, CU_STREAM_NON_BLOCKING));
	gpu_check(cuMemAlloc_v2(&worker->outputs, (size_t)NODES * BLOCKS * sizeof(uint32_t)));
	while (!over) {
		struct instance instance = make(worker);

		for (unsigned int round = 0; round < LAUNCHES && !over; round++) {
			for (int i = rand_r(&worker->random) % 8; application_disables && round > 0 && i > 4; i--)
				switch_first(&instance);
			toggle(&instance);
			launch_and_look(worker, &instance, round);
		}
		destroy(&instance);
	}
	gpu_check(cuMemFree_v2(worker->outputs));
	gpu_check(cuStreamDestroy_v2(worker->stream));
	return NULL;
}

static void wait_a_while(void)
{
	const char *text = getenv("SOAK_SECONDS");
	const struct timespec pause = {.tv_sec = text ? atoi(text) : 1};

	nanosleep(&pause, NULL);
}

static void work_in_threads(void)
{
	struct worker workers[THREADS] = {{0}};
	pthread_t threads[THREADS];

	gpu_initialise();
	gpu_open(&gpu, 0);
	if (gpu.topology->compute_major >= 9)
		gpu_check(cuFuncSetAttribute(gpu.where, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1));
	over = false;
	launched = lost = 0;
	for (unsigned int i = 0; i < THREADS; i++) {
		workers[i] = (struct worker){.number = i, .random = i};
		assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
	}
	wait_a_while();
	over = true;
	for (unsigned int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	gpu_close(&gpu);
	print_message("# %llu launches of graphs of %d nodes, each node toggled\n", (unsigned long long)launched, NODES);
	assert_true(launched > 0);
	assert_int_equal(lost, 0);
}

static void test_every_toggled_node_runs(void **state)
{
	(void)state;
	application_disables = false;
	work_in_threads();
}

static void test_only_nodes_disabled_by_the_application_stay_off(void **state)
{
	(void)state;
	application_disables = true;
	work_in_threads();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_toggled_node_runs),
		cmocka_unit_test(test_only_nodes_disabled_by_the_application_stay_off),
	};

	return cmocka_run_group_tests_name("driver_toggles", tests, NULL, NULL);
}
