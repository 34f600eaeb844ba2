#include "rules.h"

#include "base/extremes.h"
#include "bound.h"
#include "priority.h"
#include "quota.h"
#include "state/budget.h"
#include "weight.h"

/* How often the others are looked at while anybody wants to run. */
#define LOOK_NS 1000000

static const struct segment_quota no_limit = {.run_us = 1000000, .period_us = 1000000};

static struct segment_rank rank;
static struct quota quota;
static struct priority priority;
static struct weight weight;
static struct bound bound;
static struct budget *budget; /* of its group, once the quota was the group's */

/* --- whose rules they are ----------------------------------------------------------------------------------------------- */

void rules_forget(void)
{
	budget_close(budget);
	budget = NULL;
}

void rules_reset(void)
{
	rank = (struct segment_rank){.priority = 0};
	quota = (struct quota){.period_ns = 0};
	bound = (struct bound){.struck = 0};
}

static bool is_same(struct segment_quota a, struct segment_quota b)
{
	return a.run_us == b.run_us && a.period_us == b.period_us;
}

/* The budget of the group, if the quota is the group's. */
static struct budget *find_budget(const struct segment *segment, struct segment_quota wanted)
{
	struct segment_revision of_group;
	uint64_t number;
	bool is_groups = group_read(&segment->group, &of_group, &number) && is_same(of_group.quota, wanted);

	if (is_groups && !budget)
		budget = budget_open(segment);
	return is_groups ? budget : NULL;
}

static void follow_quota(const struct segment *segment, struct segment_quota wanted, uint64_t now)
{
	struct segment_quota obeyed = segment_quota_in_range(wanted);
	int64_t run_ns = (int64_t)obeyed.run_us * 1000, period_ns = (int64_t)obeyed.period_us * 1000;
	struct budget *shared = segment_quota_limits(wanted) ? find_budget(segment, wanted) : NULL;

	if (quota.run_ns != run_ns || quota.period_ns != period_ns || quota.budget != shared)
		quota_begin(&quota, run_ns, period_ns, shared, now);
}

/* It may be aside already. */
static void begin_rank(struct segment_rank wanted, uint64_t now)
{
	priority_begin(&priority);
	weight_begin(&weight, segment_rank_weight(wanted), now);
	if (quota.is_aside) {
		priority_was_put_aside(&priority, now, now);
		weight_was_put_aside(&weight, now, now);
	}
}

static void follow_rank(struct segment_rank wanted, uint64_t now)
{
	if (segment_rank_is_given(wanted) && !segment_rank_is_given(rank)) {
		begin_rank(wanted, now);
	} else if (segment_rank_is_given(wanted)) {
		weight_change(&weight, segment_rank_weight(wanted));
	}
	rank = wanted;
}

void rules_follow(const struct segment *segment, const struct segment_revision *revision, uint64_t now)
{
	follow_quota(segment, segment_quota_limits(revision->quota) ? revision->quota : no_limit, now);
	follow_rank(revision->rank, now);
}

bool rules_take_part(void)
{
	return segment_rank_is_given(rank);
}

struct neighbours_self rules_self(void)
{
	return (struct neighbours_self){
		.priority = segment_rank_priority(rank),
		.weight = segment_rank_weight(rank),
		.served_ns = weight.served_ns,
	};
}

struct budget *rules_budget(void)
{
	return quota.budget;
}

/* --- what they want ----------------------------------------------------------------------------------------------------- */

static unsigned int gpus_with_work(const struct sight *sight)
{
	unsigned int count = 0;

	for (unsigned int i = 0; i < sight->gpu_count; i++)
		count += sight->gpus[i].may_want;
	return count;
}

static bool is_lively(const struct sight *sight, const struct neighbours *neighbours)
{
	return neighbours->any && (sight->wants || neighbours->higher_wants || neighbours->equals_wanting > 0);
}

static uint64_t soonest(uint64_t now, const struct neighbours *neighbours)
{
	uint64_t of_quota = quota.run_ns < quota.period_ns ? quota_soonest(&quota, now) : UINT64_MAX;

	return neighbours->any ? now : of_quota;
}

/* Its rank: `is_spent` says that its quota wants it aside. */
static bool give_way(uint64_t now, bool wants, bool is_spent, const struct neighbours *neighbours, struct wish *wish)
{
	struct priority_wish of_priority = priority_step(&priority, now, wants, neighbours);
	bool is_held = is_spent || of_priority.is_aside;
	bool is_ahead = weight_step(&weight, now, wants, is_held, neighbours);

	wish->slice_us = of_priority.slice_us;
	wish->until = min_u64(wish->until, of_priority.until);
	return is_held || is_ahead;
}

struct wish rules_ask(uint64_t now, const struct sight *sight, const struct neighbours *neighbours)
{
	struct wish wish = {.soonest = soonest(now, neighbours)};
	bool is_wanted = quota_step(&quota, now, sight->wants, &wish.until);
	uint64_t wake;

	if (rules_take_part())
		is_wanted = give_way(now, sight->wants, is_wanted, neighbours, &wish);
	wish.is_aside = bound_step(&bound, now, is_wanted, gpus_with_work(sight), &wake);
	wish.until = min_u64(wish.until, wake);
	if (is_lively(sight, neighbours))
		wish.until = min_u64(wish.until, now + LOOK_NS);
	return wish;
}

/* --- what was done ------------------------------------------------------------------------------------------------------ */

void rules_put_aside(uint64_t begin, uint64_t end)
{
	quota_was_put_aside(&quota, begin, end);
	bound_was_put_aside(&bound, end);
	if (rules_take_part()) {
		priority_was_put_aside(&priority, begin, end);
		weight_was_put_aside(&weight, begin, end);
	}
}

void rules_taken_back(uint64_t end)
{
	quota_was_taken_back(&quota, end);
	bound_was_taken_back(&bound, end);
	if (rules_take_part()) {
		priority_was_taken_back(&priority, end);
		weight_was_taken_back(&weight, end);
	}
}

void rules_tell(const struct segment *segment)
{
	segment_set_time_used(segment, quota.present_ns / 1000, quota.aside_ns / 1000, bound.struck);
}
