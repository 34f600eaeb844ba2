#include "obstacle.h"

#include "base/clock.h"

#include <stdatomic.h>

#define PATIENCE_US 200000
#define PATIENCE_STEP_US 200

/* Whoever writes one of them reads the other afterwards: so either our thread sees the reason, or who found it sees that the
 * program is aside, and waits. */
static _Atomic int reason = SEGMENT_TIME_NONE;
static atomic_bool is_aside;

enum segment_time_state obstacle_get(void)
{
	return (enum segment_time_state)atomic_load(&reason);
}

void obstacle_found(enum segment_time_state why)
{
	int none = SEGMENT_TIME_NONE;

	atomic_compare_exchange_strong(&reason, &none, (int)why);
}

bool obstacle_begin_aside(void)
{
	atomic_store(&is_aside, true);
	bool may_begin = obstacle_get() == SEGMENT_TIME_NONE;

	atomic_store(&is_aside, may_begin);
	return may_begin;
}

void obstacle_end_aside(void)
{
	atomic_store(&is_aside, false);
}

void obstacle_wait_until_back(void)
{
	for (int waited = 0; atomic_load(&is_aside) && waited < PATIENCE_US; waited += PATIENCE_STEP_US)
		clock_pause_us(PATIENCE_STEP_US);
}

void obstacle_after_fork(void)
{
	atomic_store(&reason, SEGMENT_TIME_NONE);
	atomic_store(&is_aside, false);
}
