#include "slices.h"

#include "base/log.h"
#include "driver/channels.h"

/* So many failures in a row are no accident. */
#define FAILURES_MAX 3

static struct {
	uint64_t given_us;
	uint64_t looks; /* at the channels, when it was given */
	unsigned int failures;
	bool said_refusal;
	struct error refusal;
} state;

void slices_begin(void)
{
	state.given_us = 0;
	state.failures = 0;
	state.said_refusal = false;
}

/* A program without work has time to wait until its channels are looked for, which disturbs it while it starts. */
static bool is_due(uint64_t wanted_us, const struct sight *sight)
{
	bool is_another = wanted_us != state.given_us, are_new = wanted_us > 0 && state.looks != channels_looks();
	bool may_look = channels_are_current() || sight->wants;

	return state.failures < FAILURES_MAX && may_look && (is_another || are_new || (wanted_us > 0 && !channels_are_current()));
}

bool slices_obey(uint64_t wanted_us, const struct sight *sight)
{
	bool asks = is_due(wanted_us, sight);
	bool is_done = asks && channels_set_slice(wanted_us, &state.refusal) == 0;

	if (is_done) {
		state.given_us = wanted_us;
		state.looks = channels_looks();
		state.failures = 0;
	}
	state.failures += asks && !is_done;
	return is_done;
}

void slices_say_refusal(void)
{
	if (state.failures == FAILURES_MAX && !state.said_refusal) {
		log_warning("the priority is not in force: %s", state.refusal.reason);
		state.said_refusal = true;
	}
}

void slices_end(void)
{
	struct error error;

	if (state.given_us > 0 || state.failures > 0)
		channels_set_slice(0, &error);
	slices_begin();
}
