#include "turns.h"

#include "base/clock.h"
#include "base/extremes.h"
#include "base/log.h"
#include "eligibility.h"
#include "kernel_access.h"
#include "memory_use.h"
#include "state/segment/events.h"
#include "time/demand/given.h"
#include "time/demand/peers.h"
#include "time/rules/rules.h"

/* How often the way to the kernel driver is looked for. */
#define ACCESS_NS UINT64_C(10000000)

static const struct segment *segment;
static struct work work;
static uint64_t reached; /* the way to the kernel driver was known for this revision; 0: for none */
static bool knows_gpus;
static bool is_reported;
static bool says_put_off; /* on standard error */

void turns_begin(const struct segment *wanted)
{
	segment = wanted;
	work = (struct work){.gpu_count = 0};
	reached = 0;
	knows_gpus = is_reported = says_put_off = false;
	suspend_begin();
	timeslice_begin();
}

/* --- one look ---------------------------------------------------------------------------------------------------- */

/* Returns whether the program was suspended or resumed: time to look again. In a suspension, a new slice disturbs no
 * program. */
static bool obey(const struct rules_verdict *verdict)
{
	bool was_on = suspend_state().is_on;

	if (verdict->suspends && !was_on && eligibility_is_there())
		suspend_now();
	timeslice_obey(verdict->slice_us, &work);
	if (!verdict->suspends)
		turns_make_ready();
	return suspend_state().is_on != was_on;
}

static struct rivals look_at_peers(uint64_t now)
{
	struct board_claim self = given_self();

	self.is_suspended = suspend_state().is_on;
	self.is_client = eligibility_reason() == SEGMENT_TIME_MPS_CLIENT;
	self.pauses = work.view.pauses;
	return rules_take_part(given_rules()) ? peers_look(now, &work, &self) : rivals_none;
}

/* `can_act`: the way to the kernel driver is known. */
static uint64_t take_turn(bool can_act, bool *is_idle)
{
	uint64_t now = process_clock_ns(), until = UINT64_MAX;

	work_look(&work, now);
	if (!work.is_counted)
		eligibility_lost(SEGMENT_TIME_UNCOUNTED);
	struct suspension suspension = suspend_state();
	struct rivals rivals = look_at_peers(now);
	struct rules_verdict verdict = rules_ask(given_rules(), now, &work.view, &suspension, &rivals);

	if (can_act && eligibility_is_there())
		until = suspend_look(now, &work, verdict.soonest);
	bool acts = can_act && obey(&verdict);

	/* Tried again, since no event tells the end of the reason. */
	if (can_act && verdict.suspends && !suspend_state().is_on && eligibility_is_there())
		until = min_u64(until, now + TURNS_RETRY_NS);
	/* An edit of the group's file alone rings no member. */
	if (suspend_state().is_on)
		until = min_u64(until, now + RULES_ALONE_NS);
	*is_idle = (can_act || !eligibility_is_there()) && !work.view.wants && !verdict.suspends &&
	           !suspend_state().is_on;
	return acts ? now : min_u64(verdict.until, until);
}

/* --- the way to the kernel driver -------------------------------------------------------------------------------- */

/* Asks the driver before any suspension: in a suspension, a call may wait. */
static bool reach(uint64_t number)
{
	enum segment_time_state reason = eligibility_reason();
	/* A client of MPS must not use the way. With an unknown driver library there is no way. */
	bool is_done = reason != SEGMENT_TIME_MPS_CLIENT && reason != SEGMENT_TIME_UNREACHABLE &&
	               kernel_access_find();

	if (is_done && !knows_gpus) {
		eligibility_lost(memory_use_of_gpus());
		knows_gpus = true;
	}
	if (!is_done && eligibility_is_there())
		segment_set_time_state(segment, SEGMENT_TIME_PENDING, number);
	reached = is_done ? number : 0;
	return is_done;
}

/* A missing place on the board hides the rank from peers: told before the reason against suspension. */
static enum segment_time_state state_now(void)
{
	enum segment_time_state state = eligibility_reason();

	if (!board_has_room() || !pool_has_room())
		state = SEGMENT_TIME_NO_PLACE;
	else if (state == SEGMENT_TIME_NONE)
		state = suspend_is_put_off() ? SEGMENT_TIME_CHANGING : SEGMENT_TIME_IN_FORCE;
	return state;
}

/* Whether the rules hold. The reader of our warnings may be slow: no warning in a suspension. */
static void tell_state(uint64_t number)
{
	bool is_put_off = suspend_is_put_off();
	bool warns = is_put_off && !says_put_off && !suspend_state().is_on && given_is_wanted();

	segment_set_time_state(segment, state_now(), number);
	if (warns)
		log_warning("quota, priority and weight are not in force: %s",
		            segment_time_text(SEGMENT_TIME_CHANGING));
	says_put_off = says_put_off || warns;
}

/* A program that is never suspended still takes part in the order. Without a rule to obey, the thread ends at once. */
uint64_t turns_look(uint64_t number, bool *is_idle)
{
	bool was_eligible = eligibility_is_there();
	bool is_reached = (reached == number && number != 0) || reach(number);
	uint64_t until = UINT64_MAX;

	*is_idle = false;
	if (is_reached || rules_take_part(given_rules()))
		until = take_turn(is_reached, is_idle);
	if (!is_reached && eligibility_is_there())
		until = min_u64(until, process_clock_ns() + ACCESS_NS);
	turns_report(number);
	if (is_reached || !eligibility_is_there())
		tell_state(number);
	if (!suspend_state().is_on)
		timeslice_report_refusal();
	if (was_eligible && !eligibility_is_there()) {
		*is_idle = false;
		until = process_clock_ns();
	}
	return until;
}

/* --- its end ----------------------------------------------------------------------------------------------------- */

void turns_make_ready(void)
{
	uint64_t since = suspend_state().since;

	if (suspend_state().is_on) {
		suspend_resume();
		segment_note(segment, &(const struct segment_event){
		                              SEGMENT_SUSPENDED, .begin_ns = since, .end_ns = process_clock_ns()});
	}
}

void turns_report(uint64_t number)
{
	const struct rules *rules = given_rules();
	const struct quota *quota = &rules->quota;

	segment_set_time_used(segment, quota->present_ns / 1000, quota->suspended_ns / 1000, rules->bounded);
	if (eligibility_is_there())
		return;
	turns_make_ready();
	if (!is_reported && given_is_wanted()) {
		log_warning("quota, priority and weight are not in force: %s", segment_time_text(eligibility_reason()));
		segment_set_time_state(segment, eligibility_reason(), number);
		is_reported = true;
	}
}

void turns_end(void)
{
	turns_make_ready();
	timeslice_end();
}
