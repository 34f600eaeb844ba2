/*
 * Usage: task KIND [--size N] [--rounds N] [--repeat N] [--in-flight] [--pause US] [--period US [--offset US]] [--burst N]
 *        [--seconds S] [--samples N] [--at-rest]
 *
 * Works on the GPU again and again, and prints at the end how many µs each repetition took, from the first launch to
 * the end of the last kernel. KIND and what N is:
 *
 *   matmul    a product of N × N matrices (3072)
 *   copy      N MiB from here to there (512)
 *   compute   arithmetic in registers, N blocks of 1024 threads (2048)
 *   network   the products of a transformer's inference, N layers of four 512 × 512 products and a copy (12)
 *
 * ROUNDS is how long compute takes: 1000 are some 30 µs of a block that has an SM of an H100 to itself, and twice as long
 * for two blocks. Each sample is REPEAT times the work. With --in-flight, the next one is always in flight, and a sample is
 * the time from the end of one to the end of the next. It pauses for up to PAUSE between two. With PERIOD, each begins
 * OFFSET after the next multiple of PERIOD on CLOCK_MONOTONIC, so that of two programs with the same PERIOD it is known which
 * one begins first. With BURST, so many samples follow each other without a pause; signals wait for the end of a burst.
 *
 * It ends after SECONDS, after so many samples, or when it is told to (support/conversation.h). It works from the beginning; with
 * --at-rest, when it is told to.
 */
#include "bench.h"
#include "bench_kernels.h"
#include "conversation.h"
#include "in_flight.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#define TILE 32
#define ONE 0x3f800000u /* 1.0f */

#define COPY_THREADS 256
#define COPY_BLOCKS_PER_SM 8

#define COMPUTE_THREADS 1024

#define NETWORK_PRODUCTS 4
#define NETWORK_WIDTH 512

#define WAKE_UP_NS 1000000 /* a sleep seldom ends so much later than asked for */

static struct options {
	double size, rounds, repeat, pause, period, offset, burst, seconds, samples;
	bool is_in_flight, is_at_rest;
} options = {.rounds = 1000, .repeat = 1, .burst = 1};

static struct bench_gpu gpu;

/* --- products ------------------------------------------------------------------------------------------------ */

static struct {
	CUfunction function;
	CUdeviceptr a, b, c;
	uint32_t n;
} product;

static void matmul_prepare(double size)
{
	if (size < TILE || size > 16384 || (unsigned int)size % TILE != 0)
		bench_fail("a matrix has a multiple of %d rows, up to 16384", TILE);
	size_t elements = (size_t)size * (size_t)size;

	product.function = bench_kernel(bench_kernels_ptx, "matmul");
	product.n = (uint32_t)size;
	product.a = bench_filled(elements, ONE);
	product.b = bench_filled(elements, ONE);
	product.c = bench_filled(elements, ONE);
}

static void matmul_start(void)
{
	void *arguments[] = {&product.a, &product.b, &product.c, &product.n};
	const struct bench_launch launch = {
		.function = product.function,
		.grid_x = product.n / TILE,
		.grid_y = product.n / TILE,
		.block_x = TILE,
		.block_y = TILE,
		.arguments = arguments,
	};

	bench_start(&gpu, &launch);
}

/* Checks the first row and the last: a partition must not change results. */
static void matmul_check(void)
{
	size_t bytes = product.n * sizeof(float);
	CUdeviceptr last = product.c + (product.n - 1) * bytes;
	float *rows = malloc(2 * bytes);

	if (!rows)
		bench_fail("no memory");
	bench_check(cuMemcpyDtoH_v2(rows, product.c, bytes));
	bench_check(cuMemcpyDtoH_v2(rows + product.n, last, bytes));
	for (uint32_t i = 0; i < 2 * product.n; i++) {
		if (rows[i] != (float)product.n)
			bench_fail("a wrong product: %g instead of %u", (double)rows[i], product.n);
	}
	free(rows);
}

/* --- copies -------------------------------------------------------------------------------------------------- */

static struct {
	CUfunction function;
	CUdeviceptr to, from;
	uint64_t count; /* of 16 bytes each */
} copy;

static void copy_prepare(double size)
{
	size_t bytes = (size_t)(size * 1024 * 1024);

	if (size <= 0 || size > 16384)
		bench_fail("a copy has up to 16384 MiB");
	copy.function = bench_kernel(bench_kernels_ptx, "copy");
	copy.to = bench_memory(bytes);
	copy.from = bench_memory(bytes);
	copy.count = bytes / 16;
}

static void copy_start(void)
{
	void *arguments[] = {&copy.to, &copy.from, &copy.count};
	const struct bench_launch launch = {
		.function = copy.function,
		.grid_x = gpu.sm_count * COPY_BLOCKS_PER_SM,
		.grid_y = 1,
		.block_x = COPY_THREADS,
		.block_y = 1,
		.arguments = arguments,
	};

	bench_start(&gpu, &launch);
}

/* --- arithmetic ---------------------------------------------------------------------------------------------- */

static struct {
	CUfunction function;
	CUdeviceptr stamps;
	unsigned int blocks;
	uint32_t rounds;
} compute;

static void compute_prepare(double size)
{
	if (size < 1 || size > 1 << 24)
		bench_fail("1 to 2^24 blocks");
	compute.function = bench_kernel(bench_kernels_ptx, "laps");
	if (options.rounds < 1 || options.rounds > 1 << 24)
		bench_fail("1 to 2^24 rounds");
	compute.blocks = (unsigned int)size;
	compute.rounds = (uint32_t)options.rounds;
	compute.stamps = bench_memory(compute.blocks * sizeof(uint64_t));
}

static void compute_start(void)
{
	uint64_t never = UINT64_MAX;
	uint32_t laps = 1;
	void *arguments[] = {&compute.stamps, &never, &compute.rounds, &laps};
	const struct bench_launch launch = {
		.function = compute.function,
		.grid_x = compute.blocks,
		.grid_y = 1,
		.block_x = COMPUTE_THREADS,
		.block_y = 1,
		.arguments = arguments,
	};

	bench_start(&gpu, &launch);
}

/* --- a chain of small kernels ---------------------------------------------------------------------------------- */

static unsigned int layers;

static void network_prepare(double size)
{
	layers = (unsigned int)size;
	matmul_prepare(NETWORK_WIDTH);
	copy_prepare(NETWORK_WIDTH * NETWORK_WIDTH * sizeof(float) / 1024.0 / 1024.0);
}

static void network_start(void)
{
	for (unsigned int layer = 0; layer < layers; layer++) {
		for (unsigned int i = 0; i < NETWORK_PRODUCTS; i++)
			matmul_start();
		copy_start();
	}
}

static void nothing_to_check(void)
{
}

static const struct kind {
	const char *name;
	double size;
	void (*prepare)(double size);
	void (*start)(void);
	void (*check)(void);
} kinds[] = {
	{"matmul", 3072, matmul_prepare, matmul_start, matmul_check},
	{"copy", 512, copy_prepare, copy_start, nothing_to_check},
	{"compute", 2048, compute_prepare, compute_start, nothing_to_check},
	{"network", 12, network_prepare, network_start, matmul_check},
};

static const struct kind *kind; /* what this program was told to do */

/* --- again and again --------------------------------------------------------------------------------------------- */

static struct in_flight work;

static void start_once(void)
{
	for (unsigned long i = 0; i < (unsigned long)options.repeat; i++)
		kind->start();
}

static double run_once(void)
{
	int64_t start = bench_now();

	start_once();
	bench_wait(&gpu);
	return (double)(bench_now() - start) / 1e3;
}

/* Pauses for up to `limit` µs, uniformly random, so that programs do not synchronize. */
static void pause_for_up_to(double limit)
{
	static unsigned short state[3] = {1, 2, 3};

	if (limit > 0)
		bench_sleep((int64_t)(erand48(state) * limit * 1e3));
}

/* A sleep that lasts too long misses a turn; the next one is taken then, rather than to begin late. */
static void await_turn(void)
{
	int64_t period = (int64_t)(options.period * 1e3), offset = (int64_t)(options.offset * 1e3), turn;

	if (period == 0)
		return;
	do {
		int64_t now = bench_now();

		turn = (now / period + 1) * period + offset;
		if (turn - now > WAKE_UP_NS)
			bench_sleep(turn - now - WAKE_UP_NS);
	} while (bench_now() >= turn);
	while (bench_now() < turn)
		;
}

static void step(void)
{
	await_turn();
	for (unsigned long i = 0; i < (unsigned long)options.burst; i++)
		conversation_keep(options.is_in_flight ? in_flight_step(&work) : run_once());
	pause_for_up_to(options.pause);
}

static void rest(void)
{
	in_flight_rest(&work);
}

/* --- the command line --------------------------------------------------------------------------------------------- */

/* Returns the KIND. */
static const char *read_options(int count, char **arguments)
{
	static const struct option names[] = {
		{"size", required_argument, NULL, 's'},    {"rounds", required_argument, NULL, 'd'},
		{"repeat", required_argument, NULL, 'r'},  {"in-flight", no_argument, NULL, 'f'},
		{"pause", required_argument, NULL, 'p'},   {"period", required_argument, NULL, 'e'},
		{"offset", required_argument, NULL, 'o'},  {"burst", required_argument, NULL, 'b'},
		{"seconds", required_argument, NULL, 't'}, {"samples", required_argument, NULL, 'n'},
		{"at-rest", no_argument, NULL, 'a'},       {NULL, 0, NULL, 0},
	};
	int option;

	while ((option = getopt_long(count, arguments, "", names, NULL)) != -1) {
		double *number = option == 's'   ? &options.size
		                 : option == 'd' ? &options.rounds
		                 : option == 'r' ? &options.repeat
		                 : option == 'p' ? &options.pause
		                 : option == 'e' ? &options.period
		                 : option == 'o' ? &options.offset
		                 : option == 'b' ? &options.burst
		                 : option == 't' ? &options.seconds
		                 : option == 'n' ? &options.samples
		                                 : NULL;

		if (option == 'a')
			options.is_at_rest = true;
		else if (option == 'f')
			options.is_in_flight = true;
		else if (number)
			*number = bench_number(optarg, "an option");
		else
			exit(EXIT_FAILURE);
	}
	if (optind != count - 1)
		bench_fail("one KIND of work is needed");
	return arguments[optind];
}

int main(int count, char **arguments)
{
	kind = bench_find(read_options(count, arguments), kinds, sizeof kinds / sizeof kinds[0], sizeof kinds[0]);
	if (options.size <= 0)
		options.size = kind->size;
	conversation_listen();
	bench_open(&gpu);
	kind->prepare(options.size);
	in_flight_open(&work, gpu.stream, start_once);
	run_once();
	if (!gpu.is_simulated)
		kind->check();
	conversation_hold(&(const struct conversation){.step = step,
	                                               .rest = rest,
	                                               .is_awake = !options.is_at_rest,
	                                               .seconds = options.seconds,
	                                               .samples = options.samples},
	                  gpu.sm_count);
	if (!gpu.is_simulated)
		kind->check();
	bench_close(&gpu);
	return EXIT_SUCCESS;
}
