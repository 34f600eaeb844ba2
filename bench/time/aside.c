/*
 * Usage: aside CONTEXTS SAMPLES
 *
 * Has work in so many contexts, suspends it for a ms and resumes it, again and again. Prints how many µs each call took
 * ("aside", "back"), and with one context how many µs after its begin the GPU did so ("stopped", "resumed"): a kernel writes
 * the GPU's clock after each lap of some 2 µs, and this program sees some of them come, by which it knows how the GPU's clock
 * differs from its own. A simulated GPU writes none. The library's part is in this program.
 */
#include "bench.h"
#include "bench_kernels.h"
#include "inside.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define CONTEXTS_MAX 16
#define ROUNDS 100000 /* of a lap: some ms */
#define ASIDE_NS 1000000
#define BACK_NS 2000000
#define IN_FLIGHT 2

/* The kernel that is watched lasts longer than a sample. */
#define WATCHED_LAPS 4096
#define WATCHED_ROUNDS 250
#define GAP_NS 200000
#define PATIENCE_NS 100000000

static struct bench_gpu gpus[CONTEXTS_MAX];
static CUfunction functions[CONTEXTS_MAX];
static CUdeviceptr stamps[CONTEXTS_MAX];

static void launch(unsigned int number)
{
	uint64_t never = UINT64_MAX;
	uint32_t rounds = ROUNDS, count = 1;
	void *arguments[] = {&stamps[number], &never, &rounds, &count};
	const struct bench_launch one = {
		.function = functions[number], .grid_x = 16, .grid_y = 1, .block_x = 1024, .block_y = 1, .arguments = arguments};

	bench_check(cuCtxSetCurrent(gpus[number].context));
	bench_start(&gpus[number], &one);
}

static void have_work(unsigned int contexts)
{
	for (unsigned int number = 0; number < contexts; number++) {
		bench_check(cuCtxSetCurrent(gpus[number].context));
		bench_wait(&gpus[number]);
		for (int i = 0; i < IN_FLIGHT; i++)
			launch(number);
	}
}

/* --- watching ------------------------------------------------------------------------------------------------------- */

static struct {
	CUstream stream;
	CUdeviceptr address;
	volatile uint64_t *stamps; /* 0: that lap has not ended */
	atomic_bool ends;
	int64_t ahead; /* so much is this program's clock ahead of the GPU's; INT64_MAX: not known */
} watched;

static void prepare_watching(void)
{
	watched.stream = bench_stream(&gpus[0]);
	watched.stamps = (volatile uint64_t *)bench_visible(2 * WATCHED_LAPS, &watched.address);
}

/* False if it does not begin. */
static bool begin_watched(void)
{
	struct bench_gpu gpu = gpus[0];
	uint64_t never = UINT64_MAX;
	uint32_t rounds = WATCHED_ROUNDS, count = WATCHED_LAPS;
	void *arguments[] = {&watched.address, &never, &rounds, &count};
	const struct bench_launch one = {
		.function = functions[0], .grid_x = 1, .grid_y = 1, .block_x = 32, .block_y = 1, .arguments = arguments};
	int64_t end = bench_now() + PATIENCE_NS;

	bench_check(cuCtxSetCurrent(gpu.context));
	bench_check(cuStreamSynchronize(watched.stream));
	memset((void *)watched.stamps, 0, WATCHED_LAPS * sizeof *watched.stamps);
	gpu.stream = watched.stream;
	bench_start(&gpu, &one);
	while (!gpu.is_simulated && watched.stamps[0] == 0 && bench_now() < end)
		;
	return watched.stamps[0] != 0;
}

/* A lap is seen some time after its stamp: a µs, if this thread runs. So the least difference is taken. */
static void *watch(void *unused)
{
	(void)unused;
	for (unsigned int lap = 0; lap < WATCHED_LAPS && !atomic_load(&watched.ends);) {
		uint64_t stamp = watched.stamps[lap];

		if (stamp == 0)
			continue;
		int64_t ahead = bench_now() - (int64_t)stamp;

		if (ahead < watched.ahead)
			watched.ahead = ahead;
		while (lap < WATCHED_LAPS && watched.stamps[lap] != 0)
			lap++;
	}
	return NULL;
}

/* The last lap before the longest gap, and the first one behind it; false if there is none. */
static bool find_gap(uint64_t *before, uint64_t *behind)
{
	*before = *behind = 0;
	for (unsigned int lap = 1; lap < WATCHED_LAPS && watched.stamps[lap] != 0; lap++) {
		uint64_t gap = watched.stamps[lap] - watched.stamps[lap - 1];

		if (gap > GAP_NS && gap > *behind - *before) {
			*before = watched.stamps[lap - 1];
			*behind = watched.stamps[lap];
		}
	}
	return *before != 0;
}

/* --- measuring ------------------------------------------------------------------------------------------------------ */

struct call {
	int64_t begin, end;
};

static void print(const char *what, int64_t from, int64_t to)
{
	printf("%s,%.1f\n", what, (double)(to - from) / 1e3);
}

static struct call put_aside(void)
{
	struct call call = {.begin = bench_now()};
	struct error error;

	if (channels_suspend(&error) != CHANNELS_DONE)
		bench_fail("%s", error.reason);
	call.end = bench_now();
	return call;
}

static struct call take_back(void)
{
	struct call call = {.begin = bench_now()};
	struct error error;

	if (channels_resume(&error) < 0)
		bench_fail("%s", error.reason);
	call.end = bench_now();
	return call;
}

static void measure(bool is_watched)
{
	pthread_t watcher;
	uint64_t before, behind;

	is_watched = is_watched && begin_watched();
	watched.ahead = INT64_MAX;
	atomic_store(&watched.ends, false);
	if (is_watched && pthread_create(&watcher, NULL, watch, NULL) != 0)
		bench_fail("no thread");
	struct call aside = put_aside();

	bench_sleep(ASIDE_NS);
	struct call back = take_back();

	bench_sleep(BACK_NS);
	atomic_store(&watched.ends, true);
	if (is_watched)
		pthread_join(watcher, NULL);
	print("aside", aside.begin, aside.end);
	print("back", back.begin, back.end);
	if (is_watched && watched.ahead != INT64_MAX && find_gap(&before, &behind)) {
		print("stopped", aside.begin, (int64_t)before + watched.ahead);
		print("resumed", back.begin, (int64_t)behind + watched.ahead);
	}
}

int main(int count, char **arguments)
{
	if (count != 3)
		bench_fail("usage: aside CONTEXTS SAMPLES");
	unsigned int contexts = (unsigned int)bench_number(arguments[1], "CONTEXTS");
	unsigned int samples = (unsigned int)bench_number(arguments[2], "SAMPLES");

	if (contexts < 1 || contexts > CONTEXTS_MAX)
		bench_fail("1 to %d contexts", CONTEXTS_MAX);
	inside_watch_channels();
	for (unsigned int i = 0; i < contexts; i++) {
		bench_open(&gpus[i]);
		functions[i] = bench_kernel(bench_kernels_ptx, "laps");
		stamps[i] = bench_memory(16 * sizeof(uint64_t));
	}
	channels_context_made();
	bench_check(cuCtxSetCurrent(gpus[0].context));
	prepare_watching();
	put_aside();
	take_back();
	for (unsigned int i = 0; i < samples; i++) {
		have_work(contexts);
		measure(contexts == 1);
	}
	for (unsigned int i = contexts; i > 0; i--) {
		bench_check(cuCtxSetCurrent(gpus[i - 1].context));
		bench_close(&gpus[i - 1]);
	}
	return 0;
}
