#include "turns.h"

#include "base/clock.h"
#include "base/log.h"
#include "driver/channels/channels.h"
#include "time/demand/given.h"

static struct {
	uint64_t given_us;
	uint64_t looks; /* channels_looks() at the last success */
	uint64_t tried; /* the last refusal; 0: never */
	unsigned int failures;
	bool is_reported;
	struct error refusal;
} state;

void timeslice_begin(void)
{
	state = (__typeof__(state)){.given_us = 0};
}

static bool is_due(uint64_t wanted_us, const struct work *work)
{
	bool is_another = wanted_us != state.given_us, are_new = wanted_us > 0 && state.looks != channels_looks();
	bool may_look = channels_are_current() || work->view.wants; /* a look disturbs a starting program */
	bool may_try = state.tried == 0 || process_clock_ns() - state.tried >= TURNS_RETRY_NS;

	return state.failures < TURNS_FAILURES_MAX && may_try && may_look &&
	       (is_another || are_new || (wanted_us > 0 && !channels_are_current()));
}

void timeslice_obey(uint64_t wanted_us, const struct work *work)
{
	enum channels_result result = is_due(wanted_us, work) ? channels_set_slice(wanted_us, &state.refusal)
	                                                      : CHANNELS_NONE;

	if (result == CHANNELS_DONE) {
		state.given_us = wanted_us;
		state.looks = channels_looks();
		state.failures = 0;
		state.tried = 0;
	} else if (result == CHANNELS_REFUSED) {
		state.failures++;
		state.tried = process_clock_ns();
	}
}

void timeslice_report_refusal(void)
{
	if (state.failures == TURNS_FAILURES_MAX && !state.is_reported && given_is_wanted()) {
		log_warning("the priority is not in force: %s", state.refusal.reason);
		state.is_reported = true;
	}
}

void timeslice_end(void)
{
	struct error error;

	if (state.given_us > 0 || state.failures > 0)
		channels_set_slice(0, &error);
	timeslice_begin();
}
