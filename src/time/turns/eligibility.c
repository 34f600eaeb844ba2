#include "eligibility.h"

#include "base/clock.h"

#include <stdatomic.h>

#define WAIT_US 2000000
#define WAIT_STEP_US 200

/* A thread writes one variable, then reads the second. Our thread sees the reason, or the thread with the reason sees
 * the suspension and waits. */
static _Atomic int reason = SEGMENT_TIME_NONE;
static atomic_bool is_suspended;

enum segment_time_state eligibility_reason(void)
{
	return (enum segment_time_state)atomic_load(&reason);
}

void eligibility_lost(enum segment_time_state why)
{
	int none = SEGMENT_TIME_NONE;

	atomic_compare_exchange_strong(&reason, &none, (int)why);
}

bool eligibility_begin_suspension(void)
{
	atomic_store(&is_suspended, true);
	bool may_begin = eligibility_is_there();

	atomic_store(&is_suspended, may_begin);
	return may_begin;
}

void eligibility_end_suspension(void)
{
	atomic_store(&is_suspended, false);
}

void eligibility_wait_until_resumed(void)
{
	for (int waited = 0; atomic_load(&is_suspended) && waited < WAIT_US; waited += WAIT_STEP_US)
		clock_pause_us(WAIT_STEP_US);
}

void eligibility_after_fork(void)
{
	atomic_store(&reason, SEGMENT_TIME_NONE);
	atomic_store(&is_suspended, false);
}
