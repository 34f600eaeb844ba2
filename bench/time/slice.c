/*
 * Usage: slice US|default ROUNDS BLOCKS
 *
 * As task compute --size BLOCKS --rounds ROUNDS --in-flight --at-rest, with a time slice of so many µs, or the driver's. The
 * library's part that sets it is in this program.
 */
#include "bench.h"
#include "bench_kernels.h"
#include "conversation.h"
#include "in_flight.h"
#include "inside.h"

#include <string.h>

#define THREADS 1024

static struct bench_gpu gpu;
static struct in_flight work;
static CUfunction laps;
static CUdeviceptr stamps;
static uint32_t rounds, blocks;

static void start_once(void)
{
	uint64_t never = UINT64_MAX;
	uint32_t count = 1;
	void *arguments[] = {&stamps, &never, &rounds, &count};
	const struct bench_launch one = {
		.function = laps, .grid_x = blocks, .grid_y = 1, .block_x = THREADS, .block_y = 1, .arguments = arguments};

	bench_start(&gpu, &one);
}

static void step(void)
{
	conversation_keep(in_flight_step(&work));
}

static void rest(void)
{
	in_flight_rest(&work);
}

static void set_slice(const char *text)
{
	struct error error;

	if (strcmp(text, "default") != 0 && channels_set_slice((uint64_t)bench_number(text, "US"), &error) < 0)
		bench_fail("%s", error.reason);
}

int main(int count, char **arguments)
{
	if (count != 4)
		bench_fail("Usage: slice US|default ROUNDS BLOCKS");
	rounds = (uint32_t)bench_number(arguments[2], "ROUNDS");
	blocks = (uint32_t)bench_number(arguments[3], "BLOCKS");
	conversation_listen();
	inside_watch_channels();
	bench_open(&gpu);
	laps = bench_kernel(bench_kernels_ptx, "laps");
	stamps = bench_memory(blocks * sizeof(uint64_t));
	in_flight_open(&work, gpu.stream, start_once);
	in_flight_step(&work);
	in_flight_rest(&work);
	set_slice(arguments[1]);
	conversation_hold(&(const struct conversation){.step = step, .rest = rest}, gpu.sm_count);
	bench_close(&gpu);
	return 0;
}
