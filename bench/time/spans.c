/*
 * Usage: spans LAUNCHES STREAMS
 *
 * Launches kernels that stay for a given time, whatever runs beside them, so that one can count how many are there at
 * once. Makes STREAMS streams. Each time that it is made to work (support/conversation.h), it does what the file LAUNCHES says,
 * once:
 *
 *   KERNELS STREAMS BLOCKS THREADS MS
 *
 * It launches so many kernels into the first STREAMS streams, one stream after the other, each of BLOCKS blocks of THREADS
 * threads that stay for MS. It waits, and prints for each block "STREAM,KERNEL,BLOCK,SM,BEGIN,END", the last two in ns of the
 * GPU's clock, which all processes share, modulo 10^15.
 */
#include "bench.h"
#include "client_kernels.h"
#include "conversation.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STREAMS_MAX 1024
#define BLOCKS_MAX 1000000 /* of all kernels of a turn */
#define PRINTED_NS UINT64_C(1000000000000000)

static struct bench_gpu gpu;
static CUstream streams[STREAMS_MAX];
static CUfunction span_kernel;
static unsigned int stream_count;
static const char *launches;

struct turn {
	unsigned int kernels, streams, blocks, threads;
	double ms;
};

static unsigned int stream_of(const struct turn *turn, unsigned int kernel)
{
	return kernel / (turn->kernels / turn->streams);
}

static void launch(const struct turn *turn, unsigned int kernel, CUdeviceptr output)
{
	uint64_t ns = (uint64_t)(turn->ms * 1e6);
	void *arguments[] = {&output, &ns};
	const struct bench_launch what = {span_kernel, turn->blocks, 1, turn->threads, 1, 0, arguments};

	gpu.stream = streams[stream_of(turn, kernel)];
	bench_start(&gpu, &what);
}

static void print(const struct turn *turn, const struct span *spans)
{
	for (unsigned int kernel = 0; kernel < turn->kernels; kernel++) {
		for (unsigned int block = 0; block < turn->blocks; block++, spans++) {
			if (spans->start == 0)
				bench_fail("a block did not run");
			printf("%u,%u,%u,%" PRIu64 ",%" PRIu64 ",%" PRIu64 "\n", stream_of(turn, kernel), kernel, block,
			       spans->sm, spans->start % PRINTED_NS, spans->end % PRINTED_NS);
		}
	}
}

static void take(const struct turn *turn)
{
	size_t count = (size_t)turn->kernels * turn->blocks;
	CUdeviceptr output = bench_filled(count * sizeof(struct span) / sizeof(uint32_t), 0);
	struct span *spans = calloc(count, sizeof *spans);

	if (!spans)
		bench_fail("no memory");
	for (unsigned int kernel = 0; kernel < turn->kernels; kernel++)
		launch(turn, kernel, output + (CUdeviceptr)kernel * turn->blocks * sizeof *spans);
	bench_check(cuCtxSynchronize());
	bench_check(cuMemcpyDtoH_v2(spans, output, count * sizeof *spans));
	print(turn, spans);
	free(spans);
	bench_check(cuMemFree_v2(output));
}

static void check(const struct turn *turn)
{
	if (turn->streams == 0 || turn->streams > stream_count || turn->kernels % turn->streams != 0)
		bench_fail("%u kernels in %u of %u streams", turn->kernels, turn->streams, stream_count);
	if (turn->kernels == 0 || turn->blocks == 0 || turn->blocks > BLOCKS_MAX / turn->kernels)
		bench_fail("a turn has 1 to %d blocks", BLOCKS_MAX);
}

/* What the first launch loads is loaded then. */
static void open_all(void)
{
	const struct turn first = {.kernels = 1, .streams = 1, .blocks = 1, .threads = 1};

	bench_open(&gpu);
	span_kernel = bench_kernel(client_kernels_ptx, "span");
	streams[0] = gpu.stream;
	for (unsigned int i = 1; i < stream_count; i++)
		streams[i] = bench_stream(&gpu);
	CUdeviceptr output = bench_memory(sizeof(struct span));
	launch(&first, 0, output);
	bench_wait(&gpu);
	bench_check(cuMemFree_v2(output));
}

static struct turn read_turn(void)
{
	FILE *file = fopen(launches, "r");
	struct turn turn;

	if (!file)
		bench_fail("%s: %s", launches, strerror(errno));
	if (fscanf(file, "%u %u %u %u %lf", &turn.kernels, &turn.streams, &turn.blocks, &turn.threads, &turn.ms) != 5)
		bench_fail("%s: no turn", launches);
	fclose(file);
	return turn;
}

static void step(void)
{
	struct turn turn = read_turn();

	check(&turn);
	take(&turn);
}

int main(int count, char **arguments)
{
	double streams_wanted = count == 3 ? bench_number(arguments[2], "STREAMS") : 0;

	if (streams_wanted < 1 || streams_wanted > STREAMS_MAX)
		bench_fail("Usage: spans LAUNCHES STREAMS");
	launches = arguments[1];
	stream_count = (unsigned int)streams_wanted;
	conversation_listen();
	open_all();
	conversation_hold(&(const struct conversation){.step = step, .is_once = true}, gpu.sm_count);
	gpu.stream = streams[0];
	bench_close(&gpu);
	return EXIT_SUCCESS;
}
