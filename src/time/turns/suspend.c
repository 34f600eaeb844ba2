#include "turns.h"

#include "base/clock.h"
#include "base/extremes.h"
#include "base/log.h"
#include "driver/channels/channels.h"
#include "eligibility.h"
#include "time/demand/given.h"

#define MS UINT64_C(1000000)

/* When the GPU lets go of the program, as a part of the time of the call (facts.md, "Time slices"). */
#define LAG_NUMERATOR 3
#define LAG_DENOMINATOR 5

/* How long after the call the counts may still grow by kernels that ended before the call. */
#define SETTLING_NS (2 * MS)

/* The looks, a ms or more apart, and the suspensions for a judgement: a thread without a CPU sees nothing. */
#define LOOKS_ENOUGH 3
#define JUDGED_ENOUGH 3

/* A look for channels disturbs calls of the program, as at the start, and takes up to 11 ms
 * (driver/channels/channels.h). */
#define PREPARATION_NS (20 * MS)

/* How much longer put off than suspended counts as put off; and the most that is counted. */
#define PUT_OFF_NS (1000 * MS)
#define PUT_OFF_MAX_NS (1500 * MS)

static struct {
	struct suspension suspension;
	uint64_t tried; /* the last refusal; 0: none */
	unsigned int failures;
	uint64_t looked;     /* the last suspend_look */
	bool is_put_off;     /* since `looked` */
	uint64_t put_off_ns; /* of late, in excess of the time suspended */
	unsigned int judged; /* suspensions with an effect, up to JUDGED_ENOUGH */
	unsigned int looks;  /* at the counts, in this suspension, after settling */
	uint64_t judged_from;
	uint64_t ended; /* kernels, at the first look */
} state;

void suspend_begin(void)
{
	state = (__typeof__(state)){.looked = 0};
}

struct suspension suspend_state(void)
{
	return state.suspension;
}

/* --- by effect --------------------------------------------------------------------------------------------------- */

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
		eligibility_lost(SEGMENT_TIME_NO_EFFECT);
	return now + MS;
}

/* --- suspending and resuming ------------------------------------------------------------------------------------- */

static void count_failure(uint64_t now, const struct error *error)
{
	state.tried = now;
	if (++state.failures == TURNS_FAILURES_MAX) {
		if (given_is_wanted())
			log_warning("quota, priority and weight are not in force: %s", error->reason);
		eligibility_lost(SEGMENT_TIME_NO_CHANNELS);
	}
}

static void suspend(uint64_t begin)
{
	struct error error;
	enum channels_result result = channels_suspend(&error);
	uint64_t end = process_clock_ns();

	state.is_put_off = result == CHANNELS_CHANGING;
	if (result == CHANNELS_DONE) {
		state.suspension = (struct suspension){true, begin + (end - begin) * LAG_NUMERATOR / LAG_DENOMINATOR};
		state.failures = 0;
		state.tried = 0;
		state.judged_from = end + SETTLING_NS;
		state.looks = 0;
	} else {
		state.suspension = (struct suspension){false, end};
		eligibility_end_suspension();
		if (result == CHANNELS_REFUSED)
			count_failure(end, &error);
	}
}

void suspend_now(void)
{
	uint64_t now = process_clock_ns();
	bool may_try = state.tried == 0 || now - state.tried >= TURNS_RETRY_NS;

	if (may_try && eligibility_begin_suspension())
		suspend(now);
}

void suspend_resume(void)
{
	struct error error;

	state.judged += !is_judged() && state.looks >= LOOKS_ENOUGH;
	if (channels_resume(&error) == 0)
		state.suspension = (struct suspension){false, process_clock_ns()};
	else
		eligibility_lost(SEGMENT_TIME_NO_CHANNELS);
	eligibility_end_suspension();
}

/* --- putting off ------------------------------------------------------------------------------------------------- */

/* A pause of this process does not count as put off. */
static void weigh(uint64_t now)
{
	uint64_t passed = now - state.looked;

	if (state.suspension.is_on)
		state.put_off_ns -= min_u64(passed, state.put_off_ns);
	else if (state.is_put_off)
		state.put_off_ns = min_u64(state.put_off_ns + min_u64(passed, TURNS_RETRY_NS), PUT_OFF_MAX_NS);
	state.is_put_off = false;
	state.looked = now;
}

bool suspend_is_put_off(void)
{
	return state.put_off_ns > PUT_OFF_NS;
}

/* --- looking ----------------------------------------------------------------------------------------------------- */

/* Suspends new contexts as well. The kernels of the new contexts are no evidence. */
static uint64_t suspend_new(uint64_t now)
{
	uint64_t since = state.suspension.since;

	suspend(now);
	if (state.suspension.is_on)
		state.suspension.since = since;
	return state.judged_from;
}

uint64_t suspend_look(uint64_t now, const struct work *work, uint64_t soonest)
{
	uint64_t next = UINT64_MAX;
	bool needs_channels = work->view.wants && !channels_are_current();
	struct error error;

	weigh(now);
	if (state.suspension.is_on && !channels_are_current()) {
		next = suspend_new(now);
	} else if (state.suspension.is_on) {
		next = judge(now, work->ended);
	} else if (needs_channels && soonest > now + PREPARATION_NS) {
		next = soonest - PREPARATION_NS;
	} else if (needs_channels) {
		channels_find(&error);
	}
	return next;
}
