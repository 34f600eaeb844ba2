#include "aside.h"

#include "base/log.h"
#include "base/process_clock.h"
#include "driver/channels.h"
#include "obstacle.h"

#define MS UINT64_C(1000000)

/* How long after the call kernels may still be counted that ended before it. */
#define SETTLING_NS (2 * MS)

/* A thread that gets no CPU sees nothing: so many looks, a ms or more apart, in so many puttings aside. */
#define LOOKS_ENOUGH 3
#define JUDGED_ENOUGH 3

/* Looking for channels disturbs calls of the program's, as when it starts, and takes up to 11 ms (driver/channels.h). */
#define PREPARATION_NS (20 * MS)

/* So many failures in a row are no accident. */
#define FAILURES_MAX 3

static struct {
	bool is_aside;
	unsigned int failures;
	unsigned int judged; /* how often it was seen that this did stop the program, up to JUDGED_ENOUGH */
	unsigned int looks;  /* at its counts, since it was put aside and these have settled */
	uint64_t judged_from;
	uint64_t ended; /* at the first of these looks */
} state;

void aside_begin(void)
{
	state.is_aside = false;
	state.failures = state.judged = 0;
}

bool aside_is(void)
{
	return state.is_aside;
}

/* --- by effect -------------------------------------------------------------------------------------------------------- */

static void judge_from(uint64_t time)
{
	state.judged_from = time;
	state.looks = 0;
}

static bool is_judged(void)
{
	return state.judged == JUDGED_ENOUGH;
}

/* Returns when to look again. */
static uint64_t judge(uint64_t now, uint64_t ended)
{
	if (is_judged() || now < state.judged_from)
		return is_judged() ? UINT64_MAX : state.judged_from;
	if (state.looks++ == 0)
		state.ended = ended;
	if (state.ended != ended)
		obstacle_found(SEGMENT_TIME_NO_EFFECT);
	return now + MS;
}

/* --- aside and back --------------------------------------------------------------------------------------------------- */

static void count_failure(const struct error *error)
{
	if (++state.failures == FAILURES_MAX) {
		log_warning("quota, priority and weight are not in force: %s", error->reason);
		obstacle_found(SEGMENT_TIME_NO_CHANNELS);
	}
}

bool aside_put(struct aside_call *call)
{
	struct error error;

	call->begin = process_clock_ns();
	if (!obstacle_begin_aside())
		return false;
	state.is_aside = channels_put_aside(&error) == 0;
	call->end = process_clock_ns();
	if (state.is_aside) {
		state.failures = 0;
		judge_from(call->end + SETTLING_NS);
	} else {
		obstacle_end_aside();
		count_failure(&error);
	}
	return state.is_aside;
}

void aside_take_back(struct aside_call *call)
{
	struct error error;

	state.judged += !is_judged() && state.looks >= LOOKS_ENOUGH;
	call->begin = process_clock_ns();
	if (channels_take_back(&error) < 0)
		obstacle_found(SEGMENT_TIME_NO_CHANNELS);
	call->end = process_clock_ns();
	state.is_aside = false;
	obstacle_end_aside();
}

/* Contexts that came meanwhile run: they are put aside, too, and what they have done is no evidence. */
uint64_t aside_look(uint64_t now, const struct sight *sight, uint64_t soonest)
{
	uint64_t next = UINT64_MAX;
	bool needs_channels = sight->wants && !channels_are_current();
	struct error error;

	if (state.is_aside && !channels_are_current()) {
		channels_put_aside(&error);
		judge_from(process_clock_ns() + SETTLING_NS);
		next = state.judged_from;
	} else if (state.is_aside) {
		next = judge(now, sight->ended);
	} else if (needs_channels && soonest > now + PREPARATION_NS) {
		next = soonest - PREPARATION_NS;
	} else if (needs_channels) {
		channels_find(&error);
	}
	return next;
}
