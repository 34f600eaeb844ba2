/*
 * Functions with which the programs of the experiments use a GPU, real or simulated. Each failure ends the program,
 * with one line on standard error. Nothing in this file uses nvtaskset: it is applied to these programs.
 *
 * BENCH_GREEN in the environment is a part of the GPU for programs that make green contexts themselves: "N" means N
 * SMs, "N-rest" all but those.
 */
#ifndef BENCH_H
#define BENCH_H

#include "cuda_api.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CUDA_DECLARE(name, number, arguments) extern CUresult(*name) arguments;
CUDA_API(CUDA_DECLARE)
#undef CUDA_DECLARE

struct bench_gpu {
	CUdevice device;
	CUcontext context;
	CUgreenCtx green; /* NULL if the context belongs to no green context */
	CUstream stream;
	unsigned int sm_count; /* as the driver reports it, of the GPU or of the green context */
	bool is_simulated;     /* its kernels compute nothing, and take no time */
};

/* A context on the first GPU, current to this thread, and a stream of it. Memory ends with it. */
void bench_open(struct bench_gpu *gpu);
void bench_close(struct bench_gpu *gpu);

/* Another stream, to replace that one. It ends with the context. */
CUstream bench_stream(const struct bench_gpu *gpu);

/* Prints "PROGRAM: REASON" on standard error, and ends the program. */
_Noreturn void bench_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

#define bench_check(call) bench_check_result(call, #call)
void bench_check_result(CUresult result, const char *call);

/* A kernel of this PTX text: bench_kernels_ptx, or that of src/gpu/kernels.h. Its module ends with bench_close. */
CUfunction bench_kernel(const char *ptx, const char *name);

struct bench_launch {
	CUfunction function;
	unsigned int grid_x, grid_y;
	unsigned int block_x, block_y;
	unsigned int shared_bytes;
	void **arguments;
};

/* Launches, without waiting. */
void bench_start(const struct bench_gpu *gpu, const struct bench_launch *launch);
void bench_wait(const struct bench_gpu *gpu);

/* Launches so many in a row, and then waits for all. Returns the time of the calls, in ns. */
int64_t bench_submit(const struct bench_gpu *gpu, const struct bench_launch *launch, int count);

/* The ns of a launch that is not waited for: the mean of 100, and of five such means the median, after one that does not
 * count. */
double bench_submit_time(const struct bench_gpu *gpu, const struct bench_launch *launch);

/* What is launched into the stream between these two is not run, but becomes a graph. */
void bench_capture(const struct bench_gpu *gpu);
CUgraphExec bench_captured(const struct bench_gpu *gpu);

/* The only argument, ROUNDS, of programs that compare cases within one process. Ends a program that was called otherwise. */
int bench_rounds(int count, char **arguments);

/* Measures each of so many cases, in another order each round: backwards every second time. */
void bench_round(int round, int cases, void (*measure)(int which));

CUdeviceptr bench_memory(size_t bytes);

/* Memory filled with this word. Waits for that, since a stream of ours would not. */
CUdeviceptr bench_filled(size_t words, uint32_t word);

/* Memory that a kernel writes and the host reads, also while the kernel runs. */
volatile uint32_t *bench_visible(size_t words, CUdeviceptr *address);

/* CLOCK_MONOTONIC, in ns, and a pause. */
int64_t bench_now(void);
void bench_sleep(int64_t ns);

/* The median, the upper of two; sorts the values. */
int64_t bench_median(int64_t *values, size_t count);

/* The row of this name in a table of structs, each of which begins with its name. Ends the program if there is none. */
const void *bench_find(const char *name, const void *rows, size_t count, size_t size);

/* "DIRECTORY/NAME", where DIRECTORY is this program's. */
#define BENCH_PATH 4200
void bench_beside(char path[BENCH_PATH], const char *name);

/* The number in an argument; ends the program if there is none. */
double bench_number(const char *text, const char *what);

#endif
