/*
 * Usage: functions [--at-rest]
 *
 * Ten functions and a graph of them, again and again, each time in another order, with several in flight: products of
 * matrices and copies of three sizes each, arithmetic of 10 µs to 3 ms, and arithmetic that takes another
 * time at each launch.
 * A sample is the time of all of them in µs (support/conversation.h).
 *
 * Each has a name of its own, for `nvtaskset top`, which knows functions by their names: "matmul_512", say.
 */
#include "bench.h"
#include "bench_kernels.h"
#include "conversation.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ONE 0x3f800000u /* 1.0f */
#define TILE 32
#define COPY_THREADS 256
#define COPY_BLOCKS 1024
#define THREADS 1024
#define ROUNDS_OF_10_US 308 /* one block on each SM, as bench/programs/task.c has it */
#define IRREGULAR_MOST 100  /* times as long */
#define GRAPH_REPEATS 3

static struct bench_gpu gpu;

enum work { PRODUCT, COPY, ARITHMETIC, IRREGULAR };

/* Of a product: rows; of a copy: MiB; of arithmetic: times 10 µs. */
static struct function {
	const char *name;
	enum work work;
	uint32_t size;
	CUfunction function;
	CUdeviceptr a, b, c;
} functions[] = {
	{"matmul_512", PRODUCT, 512, NULL, 0, 0, 0},   {"matmul_1024", PRODUCT, 1024, NULL, 0, 0, 0},
	{"matmul_2048", PRODUCT, 2048, NULL, 0, 0, 0}, {"copy_16", COPY, 16, NULL, 0, 0, 0},
	{"copy_64", COPY, 64, NULL, 0, 0, 0},          {"copy_256", COPY, 256, NULL, 0, 0, 0},
	{"laps_1", ARITHMETIC, 1, NULL, 0, 0, 0},      {"laps_30", ARITHMETIC, 30, NULL, 0, 0, 0},
	{"laps_300", ARITHMETIC, 300, NULL, 0, 0, 0},  {"laps_irregular", IRREGULAR, 1, NULL, 0, 0, 0},
};

#define FUNCTIONS (sizeof functions / sizeof functions[0])

static CUgraphExec graph;
static unsigned short chance[3] = {1, 2, 3};

/* --- functions ---------------------------------------------------------------------------------------------------- */

/* The kernel whose name begins so, under this name, in a module of its own. */
static CUfunction renamed(const char *name)
{
	size_t length = strcspn(name, "_"), room = strlen(bench_kernels_ptx) + strlen(name) + 1;
	char entry[32], *text = malloc(room);
	CUfunction function;
	CUmodule module;

	snprintf(entry, sizeof entry, ".entry %.*s(", (int)length, name);
	const char *found = strstr(bench_kernels_ptx, entry);

	if (!text || !found)
		bench_fail("%s: no such kernel", name);
	found += strlen(entry) - 1;
	snprintf(text, room, "%.*s%s%s", (int)(found - bench_kernels_ptx), bench_kernels_ptx, name + length, found);
	bench_check(cuModuleLoadData(&module, text));
	bench_check(cuModuleGetFunction(&function, module, name));
	free(text);
	return function;
}

static void prepare(struct function *function)
{
	size_t elements = (size_t)function->size * function->size, bytes = (size_t)function->size << 20;

	function->function = renamed(function->name);
	if (function->work == PRODUCT) {
		function->a = bench_filled(elements, ONE);
		function->b = bench_filled(elements, ONE);
		function->c = bench_filled(elements, ONE);
	} else if (function->work == COPY) {
		function->a = bench_memory(bytes);
		function->b = bench_memory(bytes);
	} else {
		function->a = bench_memory(gpu.sm_count * sizeof(uint64_t));
	}
}

static void start_product(struct function *function)
{
	uint32_t n = function->size;
	void *arguments[] = {&function->a, &function->b, &function->c, &n};

	bench_start(&gpu, &(const struct bench_launch){function->function, n / TILE, n / TILE, TILE, TILE, 0, arguments});
}

static void start_copy(struct function *function)
{
	uint64_t count = ((uint64_t)function->size << 20) / 16;
	void *arguments[] = {&function->a, &function->b, &count};

	bench_start(&gpu, &(const struct bench_launch){function->function, COPY_BLOCKS, 1, COPY_THREADS, 1, 0, arguments});
}

static void start_arithmetic(struct function *function, uint32_t times)
{
	uint64_t never = UINT64_MAX;
	uint32_t laps = 1, rounds = times * ROUNDS_OF_10_US;
	void *arguments[] = {&function->a, &never, &rounds, &laps};

	bench_start(&gpu, &(const struct bench_launch){function->function, gpu.sm_count, 1, THREADS, 1, 0, arguments});
}

static void start(struct function *function)
{
	if (function->work == PRODUCT)
		start_product(function);
	else if (function->work == COPY)
		start_copy(function);
	else
		start_arithmetic(function, function->work == IRREGULAR ? 1 + (uint32_t)(erand48(chance) * IRREGULAR_MOST)
		                                                       : function->size);
}

/* Of the regular ones: what is captured stays the same. */
static void make_graph(void)
{
	CUgraph captured;

	bench_check(cuStreamBeginCapture_v2(gpu.stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	for (size_t i = 0; i < GRAPH_REPEATS * FUNCTIONS; i++) {
		if (functions[i % FUNCTIONS].work != IRREGULAR)
			start(&functions[i % FUNCTIONS]);
	}
	bench_check(cuStreamEndCapture(gpu.stream, &captured));
	bench_check(cuGraphInstantiateWithFlags(&graph, captured, 0));
	bench_check(cuGraphDestroy(captured));
}

/* --- again and again ------------------------------------------------------------------------------------------------ */

/* The number FUNCTIONS is the graph. */
static void shuffle(size_t order[FUNCTIONS + 1])
{
	for (size_t i = 0; i <= FUNCTIONS; i++)
		order[i] = i;
	for (size_t i = FUNCTIONS; i > 0; i--) {
		size_t other = (size_t)(erand48(chance) * (double)(i + 1)), kept = order[i];

		order[i] = order[other];
		order[other] = kept;
	}
}

static void step(void)
{
	size_t order[FUNCTIONS + 1];
	int64_t begin = bench_now();

	shuffle(order);
	for (size_t i = 0; i <= FUNCTIONS; i++) {
		if (order[i] == FUNCTIONS)
			bench_check(cuGraphLaunch(graph, gpu.stream));
		else
			start(&functions[order[i]]);
	}
	bench_wait(&gpu);
	conversation_keep((double)(bench_now() - begin) / 1e3);
}

static void rest(void)
{
	bench_wait(&gpu);
}

int main(int count, char **arguments)
{
	bool is_at_rest = count == 2 && strcmp(arguments[1], "--at-rest") == 0;

	if (count != 1 && !is_at_rest)
		bench_fail("Usage: functions [--at-rest]");
	conversation_listen();
	bench_open(&gpu);
	for (size_t i = 0; i < FUNCTIONS; i++)
		prepare(&functions[i]);
	make_graph();
	conversation_hold(&(const struct conversation){.seconds = HUGE_VAL,
	                                               .samples = HUGE_VAL,
	                                               .is_at_rest = is_at_rest,
	                                               .step = step,
	                                               .rest = rest},
	                  gpu.sm_count);
	bench_close(&gpu);
	return EXIT_SUCCESS;
}
