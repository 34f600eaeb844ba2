#include "held.h"

#include "base/extremes.h"
#include "base/process_clock.h"
#include "mps/reach.h"
#include "neighbours.h"
#include "prediction_tell.h"
#include "rules.h"
#include "stepping.h"
#include "turnstile.h"

#define MS UINT64_C(1000000)

/* How often the others are looked at while anybody wants to run; and whether MPS is still there. */
#define LOOK_NS MS
#define SERVER_NS (100 * MS)

/* How often it is said how good predictions were. */
#define TELL_NS (100 * MS)

static uint64_t server_seen; /* when MPS was looked for; 0: never */
static uint64_t others_seen; /* when others were looked at; 0: never */
static bool is_counted;      /* ends of kernels are seen */

/* --- rules ----------------------------------------------------------------------------------------------------------- */

/* What is saved up for a long launch is one program's, not a group's: by AE, each member of a group has the quota for itself. */
void held_follow(const struct segment_revision *wanted, uint64_t now)
{
	struct segment_quota quota = segment_quota_in_range(wanted->quota);
	bool is_ae = segment_policy_is_ae(wanted->rank);
	const struct turnstile_rules rules = {
		.turn = segment_policy_is_ht(wanted->rank) ? HOLDING_HT : HOLDING_PRT,
		.reserve = is_ae ? RESERVE_APRIORI : RESERVE_POSTERIOR,
		.budget = is_ae ? NULL : rules_budget(),
		.gives_way = segment_rank_is_given(wanted->rank),
		.run_ns = segment_quota_limits(quota) ? (uint64_t)quota.run_us * 1000 : 1,
		.period_ns = segment_quota_limits(quota) ? (uint64_t)quota.period_us * 1000 : 1,
	};

	others_seen = 0;
	turnstile_follow(&rules, now);
	turnstile_begin();
}

void held_end(void)
{
	stepping_end();
	turnstile_end();
	server_seen = 0;
}

/* --- others ---------------------------------------------------------------------------------------------------------- */

/* A launch that is held wants to run, too. */
static struct sight with_ready(const struct sight *sight)
{
	struct sight seen = *sight;

	for (unsigned int i = 0; i < seen.gpu_count; i++) {
		seen.gpus[i].wants = seen.gpus[i].wants || turnstile_is_ready(seen.gpus[i].pci);
		seen.wants = seen.wants || seen.gpus[i].wants;
	}
	return seen;
}

static uint64_t give_way(const struct neighbours_on_gpu *seen, uint64_t now)
{
	struct stepping stepping = stepping_see(seen, now);

	turnstile_give_way(seen, &stepping, now);
	return stepping.next;
}

static uint64_t look_at_others(uint64_t now, const struct sight *sight)
{
	struct sight seen = with_ready(sight);
	struct neighbours_self self = rules_self();
	struct neighbours_on_gpu gpu;
	uint64_t wake = UINT64_MAX;

	self.is_client = true;
	struct neighbours all = neighbours_look(now, &seen, &self);

	for (unsigned int i = 0; neighbours_seen(i, &gpu); i++)
		wake = min_u64(wake, give_way(&gpu, now));
	if (all.any && (seen.wants || all.higher_wants))
		wake = min_u64(wake, now + LOOK_NS);
	return wake;
}

/* Our thread looks more often where launches are about to end. */
static uint64_t look_at_others_at_times(uint64_t now, const struct sight *sight)
{
	uint64_t wake = others_seen + LOOK_NS;

	if (now >= wake) {
		wake = look_at_others(now, sight);
		others_seen = now;
	}
	return wake;
}

/* --- looking --------------------------------------------------------------------------------------------------------- */

/* Once it has gone, this process is a client of nobody's, and can launch nothing; unless only its pipe cannot be seen. */
static bool has_server(uint64_t now)
{
	static bool is_there;

	if (server_seen == 0 || now - server_seen >= SERVER_NS) {
		is_there = mps_is_in_reach();
		server_seen = now;
	}
	return is_there;
}

uint64_t held_look(uint64_t now, const struct sight *sight)
{
	uint64_t wake = UINT64_MAX;

	is_counted = sight->is_counted;
	if (has_server(now)) {
		turnstile_begin();
		wake = turnstile_look(now);
		if (rules_take_part())
			wake = min_u64(wake, look_at_others_at_times(now, sight));
		else
			stepping_end();
	} else {
		held_end();
	}
	return wake;
}

enum segment_time_state held_state(void)
{
	enum segment_time_state state = SEGMENT_TIME_HELD;

	if (!turnstile_is_open())
		state = SEGMENT_TIME_MPS_GONE;
	else if (!is_counted || turnstile_is_blind())
		state = SEGMENT_TIME_UNSEEN;
	return state;
}

/* --- telling --------------------------------------------------------------------------------------------------------- */

static void tell_predictions(const struct segment *segment)
{
	static uint64_t told;
	uint64_t now = process_clock_ns();

	if (now - told >= TELL_NS) {
		prediction_tell(segment, turnstile_history());
		told = now;
	}
}

void held_tell(const struct segment *segment)
{
	struct turnstile_use use = turnstile_use();

	segment_set_time_used(segment, use.used_ns / 1000, use.held_ns / 1000, use.bounded);
	tell_predictions(segment);
	segment_set_time_held(segment, use.held);
}
