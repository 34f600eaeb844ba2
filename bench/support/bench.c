#include "bench.h"

#include <dlfcn.h>
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CUDA_DEFINE(name, number, arguments) CUresult(*name) arguments;
CUDA_API(CUDA_DEFINE)
#undef CUDA_DEFINE

static void *library;

void bench_fail(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	fprintf(stderr, "%s: ", program_invocation_short_name);
	vfprintf(stderr, format, arguments);
	fputc('\n', stderr);
	va_end(arguments);
	exit(EXIT_FAILURE);
}

void bench_check_result(CUresult result, const char *call)
{
	const char *name = NULL;

	if (result == CUDA_SUCCESS)
		return;
	if (cuGetErrorName)
		cuGetErrorName(result, &name);
	bench_fail("error %d (%s): %s", result, name ? name : "unknown", call);
}

/* --- the driver --------------------------------------------------------------------------------------------- */

static void load_driver(void)
{
	static const struct {
		const char *name;
		void **function;
	} functions[] = {
#define CUDA_LOOK_UP(name, number, arguments) {#name, (void **)&name},
		CUDA_API(CUDA_LOOK_UP)
#undef CUDA_LOOK_UP
	};

	library = dlopen("libcuda.so.1", RTLD_NOW);
	if (!library)
		bench_fail("%s", dlerror());
	for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
		*functions[i].function = dlsym(library, functions[i].name);
}

/* The part of the GPU that BENCH_GREEN names. */
static CUdevResource green_part(CUdevice device, const char *text)
{
	CUdevResource whole, part, rest;
	unsigned int count = 1;
	char *end;
	unsigned long sms = strtoul(text, &end, 10);

	if (sms == 0 || (*end != '\0' && strcmp(end, "-rest") != 0))
		bench_fail("BENCH_GREEN=%s: neither N nor N-rest", text);
	if (!cuGreenCtxCreate)
		bench_fail("this driver has no green contexts");
	bench_check(cuDeviceGetDevResource(device, &whole, CU_DEV_RESOURCE_TYPE_SM));
	bench_check(cuDevSmResourceSplitByCount(&part, &count, &whole, &rest, 0, (unsigned int)sms));
	return *end == '\0' ? part : rest;
}

/* Makes the green context's context current, and makes the stream that stays in it. */
static void open_green(struct bench_gpu *gpu, const char *text)
{
	CUdevResource part = green_part(gpu->device, text);
	CUdevResourceDesc description;

	bench_check(cuDevResourceGenerateDesc(&description, &part, 1));
	bench_check(cuGreenCtxCreate(&gpu->green, description, gpu->device, CU_GREEN_CTX_DEFAULT_STREAM));
	bench_check(cuCtxFromGreenCtx(&gpu->context, gpu->green));
	bench_check(cuCtxSetCurrent(gpu->context));
	gpu->sm_count = part.sm.smCount;
}

static void open_whole(struct bench_gpu *gpu)
{
	int sms;

	bench_check(cuCtxCreate_v2(&gpu->context, 0, gpu->device));
	bench_check(cuDeviceGetAttribute(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, gpu->device));
	gpu->sm_count = (unsigned int)sms;
}

void bench_open(struct bench_gpu *gpu)
{
	const char *green = getenv("BENCH_GREEN");

	*gpu = (struct bench_gpu){.green = NULL};
	load_driver();
	bench_check(cuInit(0));
	bench_check(cuDeviceGet(&gpu->device, 0));
	gpu->is_simulated = dlsym(library, "simulated_gpu") != NULL;
	if (green && *green)
		open_green(gpu, green);
	else
		open_whole(gpu);
	gpu->stream = bench_stream(gpu);
}

CUstream bench_stream(const struct bench_gpu *gpu)
{
	CUstream stream;

	bench_check(gpu->green ? cuGreenCtxStreamCreate(&stream, gpu->green, CU_STREAM_NON_BLOCKING, 0)
	                       : cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	return stream;
}

/* --- kernels ------------------------------------------------------------------------------------------------- */

static CUmodule modules[8];
static unsigned int module_count;

CUfunction bench_kernel(const char *ptx, const char *name)
{
	CUfunction function;

	if (module_count == sizeof modules / sizeof modules[0])
		bench_fail("more than %u kernels", module_count);
	bench_check(cuModuleLoadData(&modules[module_count], ptx));
	bench_check(cuModuleGetFunction(&function, modules[module_count], name));
	module_count++;
	return function;
}

void bench_close(struct bench_gpu *gpu)
{
	while (module_count > 0)
		bench_check(cuModuleUnload(modules[--module_count]));
	bench_check(cuStreamDestroy_v2(gpu->stream));
	bench_check(gpu->green ? cuGreenCtxDestroy(gpu->green) : cuCtxDestroy_v2(gpu->context));
}

void bench_start(const struct bench_gpu *gpu, const struct bench_launch *launch)
{
	bench_check(cuLaunchKernel(launch->function, launch->grid_x, launch->grid_y, 1, launch->block_x,
	                           launch->block_y, 1, launch->shared_bytes, gpu->stream, launch->arguments,
	                           NULL));
}

void bench_wait(const struct bench_gpu *gpu)
{
	bench_check(cuStreamSynchronize(gpu->stream));
}

int64_t bench_submit(const struct bench_gpu *gpu, const struct bench_launch *launch, int count)
{
	int64_t start = bench_now();

	for (int i = 0; i < count; i++)
		bench_start(gpu, launch);
	int64_t end = bench_now();

	bench_wait(gpu);
	return end - start;
}

void bench_capture(const struct bench_gpu *gpu)
{
	bench_check(cuStreamBeginCapture_v2(gpu->stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
}

CUgraphExec bench_captured(const struct bench_gpu *gpu)
{
	CUgraph graph;
	CUgraphExec exec;

	bench_check(cuStreamEndCapture(gpu->stream, &graph));
	bench_check(cuGraphInstantiateWithFlags(&exec, graph, 0));
	bench_check(cuGraphDestroy(graph));
	return exec;
}

#define BATCH 100
#define BATCHES 5

double bench_submit_time(const struct bench_gpu *gpu, const struct bench_launch *launch)
{
	int64_t times[BATCHES];

	bench_submit(gpu, launch, BATCH);
	for (int i = 0; i < BATCHES; i++)
		times[i] = bench_submit(gpu, launch, BATCH);
	return (double)bench_median(times, BATCHES) / BATCH;
}

/* --- rounds -------------------------------------------------------------------------------------------------- */

int bench_rounds(int count, char **arguments)
{
	int rounds = count == 2 ? (int)bench_number(arguments[1], "ROUNDS") : 0;

	if (rounds <= 0)
		bench_fail("Usage: %s ROUNDS", program_invocation_short_name);
	return rounds;
}

void bench_round(int round, int cases, void (*measure)(int which))
{
	for (int i = 0; i < cases; i++)
		measure((round + (round % 2 ? cases - i : i)) % cases);
}

/* --- memory -------------------------------------------------------------------------------------------------- */

CUdeviceptr bench_memory(size_t bytes)
{
	CUdeviceptr address;

	bench_check(cuMemAlloc_v2(&address, bytes));
	return address;
}

CUdeviceptr bench_filled(size_t words, uint32_t word)
{
	CUdeviceptr address = bench_memory(words * sizeof word);

	bench_check(cuMemsetD32_v2(address, word, words));
	bench_check(cuCtxSynchronize());
	return address;
}

/* On 64-bit Linux, host and GPU share one address space, so page-locked memory has one address. The simulator's memory
 * is the host's. */
volatile uint32_t *bench_visible(size_t words, CUdeviceptr *address)
{
	CUresult (*allocate)(void **memory, size_t bytes, unsigned int flags) = dlsym(library, "cuMemHostAlloc");
	void *memory = NULL;

	if (allocate)
		bench_check(allocate(&memory, words * sizeof(uint32_t), 0));
	*address = memory ? (CUdeviceptr)(uintptr_t)memory : bench_memory(words * sizeof(uint32_t));
	return (volatile uint32_t *)(uintptr_t)*address;
}

/* --- time ---------------------------------------------------------------------------------------------------- */

int64_t bench_now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

void bench_sleep(int64_t ns)
{
	const struct timespec pause = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};

	nanosleep(&pause, NULL);
}

static int compare(const void *a, const void *b)
{
	int64_t first = *(const int64_t *)a, second = *(const int64_t *)b;

	return (first > second) - (first < second);
}

int64_t bench_median(int64_t *values, size_t count)
{
	qsort(values, count, sizeof *values, compare);
	return values[count / 2];
}

double bench_number(const char *text, const char *what)
{
	char *end;
	double number = strtod(text, &end);

	if (end == text || *end != '\0' || !isfinite(number) || number < 0)
		bench_fail("%s: '%s' is not a number", what, text);
	return number;
}

const void *bench_find(const char *name, const void *rows, size_t count, size_t size)
{
	const char *row = rows, *end = row + count * size;

	while (row < end && strcmp(*(const char *const *)(const void *)row, name) != 0)
		row += size;
	if (row == end)
		bench_fail("%s: not a kind of work", name);
	return row;
}

void bench_beside(char path[BENCH_PATH], const char *name)
{
	char self[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);

	if (length < 0)
		bench_fail("/proc is not mounted");
	self[length] = '\0';
	snprintf(path, BENCH_PATH, "%s/%s", dirname(self), name);
}
