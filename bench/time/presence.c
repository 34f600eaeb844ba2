/*
 * Usage: presence KIND SECONDS
 *
 * Always has work on the GPU, of one block, and notes when it ran: the GPU's clock after each lap of some 10 µs. KIND is how
 * long its kernels are: 10us, 200us, 1ms, 2ms, 39ms, 40ms, 392ms, 400ms, or graph, a graph of 1000 kernels of 10 µs.
 *
 * It is present from its first lap to its last one before a gap of more than 3 ms: the neighbour's time slices are
 * shorter, and the time for which a quota suspends it is longer. From the begin of its second such stretch to that of its
 * last one there are whole periods. Prints one row: how many ms that took, the laps in it for each ms, the longest
 * shorter gap in ms, which is a neighbour's turn, and how much of it was present, in %: twice, as the kernel driver was
 * asked for, and by laps. Beside a neighbour, laps miss its turns at the edges of a stretch: one that is resumed may have
 * to wait for its end. What was asked for is the time from the begin of a call that resumes the program to that of the
 * next one that suspends it: the GPU does both after the same 0.28 ms (hardware.md). All 0 if there was no whole
 * period.
 *
 * PRESENCE_PERIODS names a file: it gets a line for each whole stretch, how many ms it was from its first lap to its last one.
 */
#include "bench.h"
#include "bench_kernels.h"
#include "gpu/topology/rm_abi.h"
#include "in_flight.h"
#include "kernel.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LAP_NS 10000
#define GAP_NS 3000000
#define ROUNDS 1000 /* of a lap, to find out how long one is */
#define LAPS 100
#define GRAPH_KERNELS 1000
#define LAPS_MAX 40000 /* of a batch */
#define THREADS 32

static const struct kind {
	const char *name;
	unsigned int laps;    /* of a kernel */
	unsigned int kernels; /* of a batch; two batches are in flight */
	bool is_graph;
} kinds[] = {
	{"10us", 1, 1000, false},
	{"200us", 20, 100, false},
	{"1ms", 100, 20, false},
	{"2ms", 200, 10, false},
	{"39ms", 3900, 1, false},
	{"40ms", 4000, 1, false},
	{"392ms", 39200, 1, false},
	{"400ms", 40000, 1, false},
	{"graph", 1, GRAPH_KERNELS, true},
};

static struct bench_gpu gpu;
static CUfunction laps;
static uint32_t rounds = ROUNDS;
static uint64_t deadline = UINT64_MAX; /* by the GPU's clock: then kernels end */

static struct batch {
	volatile uint64_t *stamps;
	CUdeviceptr address;
	CUgraphExec graph;
} batches[IN_FLIGHT];

static const struct kind *kind;
static struct in_flight work;

/* --- launching ---------------------------------------------------------------------------------------------------- */

static void launch(CUdeviceptr stamps, uint32_t count)
{
	void *arguments[] = {&stamps, &deadline, &rounds, &count};
	const struct bench_launch one = {
		.function = laps, .grid_x = 1, .grid_y = 1, .block_x = THREADS, .block_y = 1, .arguments = arguments};

	bench_start(&gpu, &one);
}

static void launch_all(const struct batch *batch)
{
	for (unsigned int i = 0; i < kind->kernels; i++)
		launch(batch->address + (size_t)i * kind->laps * sizeof(uint64_t), kind->laps);
}

static void prepare(struct batch *batch)
{
	batch->stamps = (volatile uint64_t *)bench_visible(2 * LAPS_MAX, &batch->address);
	if (kind->is_graph) {
		bench_capture(&gpu);
		launch_all(batch);
		batch->graph = bench_captured(&gpu);
	}
}

static void start(void)
{
	const struct batch *batch = &batches[in_flight_place(&work)];

	memset((void *)batch->stamps, 0, LAPS_MAX * sizeof *batch->stamps);
	if (kind->is_graph)
		bench_check(cuGraphLaunch(batch->graph, gpu.stream));
	else
		launch_all(batch);
}

/* --- what was asked for ------------------------------------------------------------------------------------------- */

#define DISABLE_CHANNELS 0x2080110b /* the first byte of its parameters: whether they are to be suspended */

static struct {
	pthread_mutex_t lock;
	bool is_aside;
	unsigned int backs;
	int64_t first_back, last_back, present_ns; /* present between these two */
	int64_t present_since_back;
} asked = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void note_back(int64_t now)
{
	if (asked.backs++ == 0)
		asked.first_back = now;
	asked.present_ns += asked.present_since_back;
	asked.present_since_back = 0;
	asked.last_back = now;
}

static void hear(unsigned long request, const void *argument)
{
	const struct rm_control *call = argument;

	if (request != IOCTL_CONTROL || call->command != DISABLE_CHANNELS)
		return;
	bool is_aside = *(const uint8_t *)(uintptr_t)call->parameters != 0;

	pthread_mutex_lock(&asked.lock);
	if (!is_aside && asked.is_aside)
		note_back(bench_now());
	else if (is_aside && !asked.is_aside && asked.backs > 0)
		asked.present_since_back = bench_now() - asked.last_back;
	asked.is_aside = is_aside;
	pthread_mutex_unlock(&asked.lock);
}

/* In %. The whole periods from the first time that it was resumed to the last one. */
static double share_asked(void)
{
	double share = 100;

	pthread_mutex_lock(&asked.lock);
	if (asked.backs > 1)
		share = (double)asked.present_ns / (double)(asked.last_back - asked.first_back) * 100;
	pthread_mutex_unlock(&asked.lock);
	return share;
}

/* --- what was noted ----------------------------------------------------------------------------------------------- */

/* The current stretch, and sums over those before it, without the very first one: its period had begun before. */
static unsigned int stretch;
static uint64_t begin, last, laps_now;
static uint64_t first_begin, present_ns, laps_before, turn_ns;
static FILE *periods;

static void begin_stretch(uint64_t stamp)
{
	if (stretch > 1) {
		present_ns += last - begin;
		laps_before += laps_now;
		if (periods)
			fprintf(periods, "%.3f\n", (double)(last - begin) / 1e6);
	}
	begin = stamp - LAP_NS;
	laps_now = 0;
	stretch++;
	if (stretch <= 2)
		first_begin = begin;
}

static void add(uint64_t stamp)
{
	if (stretch == 0 || stamp - last > LAP_NS + GAP_NS)
		begin_stretch(stamp);
	else if (stamp - last > LAP_NS + turn_ns)
		turn_ns = stamp - last - LAP_NS;
	last = stamp;
	laps_now++;
}

/* Without a gap, all of it is one stretch. */
static void print_row(void)
{
	if (stretch == 1) {
		present_ns = last - begin;
		laps_before = laps_now;
		begin = last;
	}
	double span_ns = (double)(begin - first_begin);

	if (span_ns > 0)
		printf("%.1f,%.3f,%.3f,%.3f,%.3f\n", span_ns / 1e6, (double)laps_before / span_ns * 1e6, (double)turn_ns / 1e6,
		       share_asked(), (double)present_ns / span_ns * 100);
	else
		printf("0,0,0,0,0\n");
}

static void take(unsigned int place)
{
	const struct batch *batch = &batches[place];

	for (unsigned int i = 0; i < kind->kernels * kind->laps && batch->stamps[i] != 0; i++)
		add(batch->stamps[i]);
}

/* --- all of it ---------------------------------------------------------------------------------------------------- */

/* How many rounds make a lap, and what the time is. The simulator's kernels note nothing. */
static void look_at_clock(const struct batch *batch, double seconds)
{
	launch(batch->address, LAPS);
	bench_wait(&gpu);
	uint64_t took = (batch->stamps[LAPS - 1] - batch->stamps[0]) / (LAPS - 1);

	if (took > 0)
		rounds = (uint32_t)((uint64_t)ROUNDS * LAP_NS / took) + 1;
	deadline = batch->stamps[LAPS - 1] + (uint64_t)(seconds * 1e9);
}

int main(int count, char **arguments)
{
	if (count != 3)
		bench_fail("usage: presence KIND SECONDS");
	double seconds = bench_number(arguments[2], "SECONDS");

	kind = bench_find(arguments[1], kinds, sizeof kinds / sizeof kinds[0], sizeof kinds[0]);
	if (getenv("PRESENCE_PERIODS"))
		periods = fopen(getenv("PRESENCE_PERIODS"), "w");
	kernel_listen(hear);
	bench_open(&gpu);
	laps = bench_kernel(bench_kernels_ptx, "laps");
	batches[0].stamps = (volatile uint64_t *)bench_visible(2 * LAPS_MAX, &batches[0].address);
	look_at_clock(&batches[0], seconds);
	prepare(&batches[0]);
	prepare(&batches[1]);
	in_flight_open(&work, gpu.stream, start);
	in_flight_run(&work, seconds, take);
	print_row();
	bench_close(&gpu);
	if (periods)
		fclose(periods);
	return 0;
}
