#include "gpu_time.h"

#include "base/clock.h"
#include "base/extremes.h"
#include "costs.h"

#include <stdbool.h>

#define START_NS UINT64_C(1000000000000000)
#define SPIN_NS UINT64_C(100000)
#define PAUSE_US 900000

/* Of this thread's current kernel, and the end of its last one. */
static _Thread_local uint64_t begin, length, release_ns, last_end;
static _Thread_local bool has_ended, is_front;

uint64_t gpu_time_of_cpu(void)
{
	return process_clock_ns();
}

static uint64_t now(void)
{
	uint64_t cpu = gpu_time_of_cpu();

	return START_NS + cpu + cpu / GPU_TIME_DRIFT;
}

static void begin_at(uint64_t time, uint64_t release)
{
	begin = time;
	length = GPU_TIME_KERNEL_NS;
	release_ns = release;
	has_ended = false;
	is_front = false;
}

void gpu_time_launch(void)
{
	begin_at(now() + cost_ns(COST_LAUNCH), cost_ns(COST_STAMP));
}

/* The one behind it begins as early as if it were the first. */
void gpu_time_launch_front(void)
{
	uint64_t stamp = cost_ns(COST_NODE_STAMP);

	begin_at(now() + cost_ns(COST_LAUNCH) - cost_ns(COST_FRONT) - stamp, stamp);
	length = 0;
	is_front = true;
}

void gpu_time_follow(void)
{
	begin_at(last_end + cost_ns(is_front ? COST_FRONT : COST_NEXT_NODE), cost_ns(COST_NODE_STAMP));
}

uint64_t gpu_time_begin(void)
{
	return begin;
}

void gpu_time_last(uint64_t ns)
{
	length = ns;
}

static void wait_until(uint64_t end)
{
	for (uint64_t time = now(); time < end; time = now()) {
		uint64_t left = end - time;

		if (left > SPIN_NS)
			clock_pause_us((long)min_u64((left - SPIN_NS) / 1000, PAUSE_US));
	}
}

/* It may be later than it was to be, if this machine is busy: but it is true. */
uint64_t gpu_time_end(void)
{
	if (!has_ended) {
		wait_until(begin + length);
		length = now() - begin;
		has_ended = true;
	}
	return begin + length;
}

uint64_t gpu_time_release(void)
{
	last_end = gpu_time_end() + release_ns;
	wait_until(last_end + cost_ns(COST_VISIBLE));
	return last_end;
}
