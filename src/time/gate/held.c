#include "held.h"

#include "base/extremes.h"
#include "launch/space/stepping.h"
#include "mps/reach.h"
#include "time/demand/given.h"
#include "time/demand/peers.h"
#include "time/demand/work.h"
#include "turnstile.h"

#define MS UINT64_C(1000000)

/* How often the others are looked at while anybody wants to run; and whether MPS is still there. */
#define LOOK_NS MS
#define SERVER_NS (100 * MS)

static uint64_t server_seen; /* when MPS was looked for; 0: never */
static uint64_t others_seen; /* when others were looked at; 0: never */
static bool is_counted;      /* ends of kernels are seen */
static struct work work;

/* --- rules ----------------------------------------------------------------------------------------------------------- */

void held_follow(const struct segment_revision *wanted, uint64_t now)
{
	struct segment_quota quota = segment_quota_in_range(wanted->quota);
	const struct turnstile_rules rules = {
		.turn = segment_policy_is_ht(wanted->rank) ? HOLDING_HT : HOLDING_PRT,
		.budget = given_group_budget(),
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

static uint64_t give_way(const struct peers_on_gpu *seen, uint64_t now)
{
	struct stepping stepping = stepping_see(seen, now);

	turnstile_give_way(seen, &stepping, now);
	return stepping.next;
}

static uint64_t look_at_others(uint64_t now)
{
	struct peers_self self = given_self();
	struct peers_on_gpu gpu;
	uint64_t wake = UINT64_MAX;

	self.is_client = true;
	struct rivals all = peers_look(now, &work, &self);

	for (unsigned int i = 0; peers_seen(i, &gpu); i++)
		wake = min_u64(wake, give_way(&gpu, now));
	if (all.any && (work.wants || all.higher_wants))
		wake = min_u64(wake, now + LOOK_NS);
	return wake;
}

/* Our thread looks more often where launches are about to end. */
static uint64_t look_at_others_at_times(uint64_t now)
{
	uint64_t wake = others_seen + LOOK_NS;

	if (now >= wake) {
		wake = look_at_others(now);
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

uint64_t held_look(uint64_t now, bool *is_idle)
{
	bool takes_part = rules_take_part(given_rules());
	uint64_t wake = UINT64_MAX;

	work_look(&work, now);
	is_counted = work.is_counted;
	if (has_server(now)) {
		turnstile_begin();
		wake = turnstile_look(now);
		if (takes_part)
			wake = min_u64(wake, look_at_others_at_times(now));
		else
			stepping_end();
	} else {
		held_end();
	}
	*is_idle = wake == UINT64_MAX && !work.wants && !takes_part && turnstile_is_open() && !turnstile_is_waited_for();
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

void held_tell(const struct segment *segment)
{
	struct turnstile_use use = turnstile_use();

	segment_set_time_used(segment, use.used_ns / 1000, use.held_ns / 1000, use.bounded);
	segment_set_time_held(segment, use.held);
}
