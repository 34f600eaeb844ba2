/*
 * Usage: slots KERNELS normal|high
 *
 * Occupies the GPU's slots for running kernels, but hardly anything else: launches KERNELS kernels at once, each in a
 * stream of its own and of one warp that stays for some ms; when all have ended, again. Their streams have the priority
 * of any other stream, or the highest that there is.
 *
 * A sample is how many of them ran at the same moment (see support/conversation.h).
 */
#include "bench.h"
#include "client_kernels.h"
#include "conversation.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KERNELS_MAX 1024
#define STAY_NS 5000000
#define THREADS 32

static struct bench_gpu gpu;
static CUstream streams[KERNELS_MAX];
static struct span spans[KERNELS_MAX];
static unsigned int kernels;
static CUfunction function;
static CUdeviceptr output;

/* --- streams with a priority ------------------------------------------------------------------------------------ */

static int highest_priority(void *driver)
{
	CUresult (*get_range)(int *least, int *greatest);
	int least, greatest = 0;

	*(void **)&get_range = dlsym(driver, "cuCtxGetStreamPriorityRange");
	if (get_range)
		bench_check(get_range(&least, &greatest));
	else if (!gpu.is_simulated)
		bench_fail("this driver has no priorities");
	return greatest;
}

static CUstream high_stream(void *driver, int priority)
{
	CUresult (*create)(CUstream *stream, unsigned int flags, int priority);
	CUstream stream;

	*(void **)&create = dlsym(driver, "cuStreamCreateWithPriority");
	if (gpu.green)
		bench_check(cuGreenCtxStreamCreate(&stream, gpu.green, CU_STREAM_NON_BLOCKING, priority));
	else if (create)
		bench_check(create(&stream, CU_STREAM_NON_BLOCKING, priority));
	else
		stream = bench_stream(&gpu); /* the simulator has no priorities */
	return stream;
}

static void make_streams(unsigned int count, bool is_high)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW);
	int priority = is_high ? highest_priority(driver) : 0;

	for (unsigned int i = 0; i < count; i++)
		streams[i] = is_high ? high_stream(driver, priority) : bench_stream(&gpu);
	dlclose(driver);
}

/* --- again and again ----------------------------------------------------------------------------------------------- */

/* Those that had started when the first one ended. */
static unsigned int ran_together(void)
{
	uint64_t first_end = UINT64_MAX;
	unsigned int together = 0;

	for (unsigned int i = 0; i < kernels; i++) {
		if (spans[i].end < first_end)
			first_end = spans[i].end;
	}
	for (unsigned int i = 0; i < kernels; i++)
		together += spans[i].start < first_end;
	return together;
}

static unsigned int run_once(void)
{
	uint64_t stay = STAY_NS;

	for (unsigned int i = 0; i < kernels; i++) {
		CUdeviceptr place = output + i * sizeof spans[0];
		void *arguments[] = {&place, &stay};
		const struct bench_launch launch = {function, 1, 1, THREADS, 1, 0, arguments};
		struct bench_gpu in_stream = gpu;

		in_stream.stream = streams[i];
		bench_start(&in_stream, &launch);
	}
	bench_check(cuCtxSynchronize());
	bench_check(cuMemcpyDtoH_v2(spans, output, kernels * sizeof spans[0]));
	return ran_together();
}

static void step(void)
{
	conversation_keep(run_once());
}

int main(int count, char **arguments)
{
	bool is_high = count == 3 && strcmp(arguments[2], "high") == 0;

	kernels = count == 3 ? (unsigned int)bench_number(arguments[1], "KERNELS") : 0;
	if (kernels < 1 || kernels > KERNELS_MAX || (!is_high && strcmp(arguments[2], "normal") != 0))
		bench_fail("Usage: slots KERNELS normal|high, up to %d", KERNELS_MAX);
	conversation_listen();
	bench_open(&gpu);
	make_streams(kernels, is_high);
	function = bench_kernel(client_kernels_ptx, "span");
	output = bench_filled(kernels * sizeof spans[0] / sizeof(uint32_t), 0);
	run_once();
	conversation_hold(&(const struct conversation){.step = step}, gpu.sm_count);
	for (unsigned int i = 0; i < kernels; i++)
		bench_check(cuStreamDestroy_v2(streams[i]));
	bench_close(&gpu);
	return EXIT_SUCCESS;
}
