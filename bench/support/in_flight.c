#include "in_flight.h"

#include "bench.h"

void in_flight_open(struct in_flight *work, CUstream stream, void (*start)(void))
{
	*work = (struct in_flight){.start = start, .stream = stream};
	for (unsigned int i = 0; i < IN_FLIGHT; i++)
		bench_check(cuEventCreate(&work->ends[i], 0));
}

static void start(struct in_flight *work)
{
	work->start();
	bench_check(cuEventRecord(work->ends[work->started++ % IN_FLIGHT], work->stream));
}

static void await(struct in_flight *work)
{
	bench_check(cuEventSynchronize(work->ends[work->ended++ % IN_FLIGHT]));
}

double in_flight_step(struct in_flight *work)
{
	int64_t begin = work->last_end != 0 ? work->last_end : bench_now();

	while (work->started - work->ended < IN_FLIGHT)
		start(work);
	await(work);
	work->last_end = bench_now();
	return (double)(work->last_end - begin) / 1e3;
}

unsigned int in_flight_place(const struct in_flight *work)
{
	return work->started % IN_FLIGHT;
}

void in_flight_run(struct in_flight *work, double seconds, void (*take)(unsigned int place))
{
	int64_t end = bench_now() + (int64_t)(seconds * 1e9);

	while (bench_now() < end || work->ended != work->started) {
		if (bench_now() < end)
			in_flight_step(work);
		else
			await(work);
		take((work->ended - 1) % IN_FLIGHT);
	}
}

void in_flight_rest(struct in_flight *work)
{
	while (work->ended != work->started)
		await(work);
	work->last_end = 0;
}
