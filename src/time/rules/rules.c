#include "rules.h"

#include "base/extremes.h"

static const struct segment_quota no_limit = {.run_us = 1000000, .period_us = 1000000};

void rules_use(struct rules *rules, const struct segment_revision *revision, struct budget *budget,
               _Atomic uint64_t *served, uint64_t now)
{
	struct segment_quota quota = segment_quota_limits(revision->quota) ? segment_quota_in_range(revision->quota)
	                                                                    : no_limit;

	quota_use(&rules->quota, (int64_t)quota.run_us * 1000, (int64_t)quota.period_us * 1000, budget, now);
	rules->rank = revision->rank;
	weight_use(&rules->weight, segment_rank_weight(revision->rank), served, now);
	if (!rules_take_part(rules))
		rules->priority = (struct priority){.working = 0};
}

static void bound(struct rules *rules, uint64_t now, const struct suspension *suspension, unsigned int gpus,
                  struct rules_verdict *verdict)
{
	uint64_t end = suspension->since + (suspension->is_on ? RULES_BOUND_NS : RULES_BACK_NS);
	bool begins = !rules->is_bounded && suspension->is_on && gpus > 1 && now >= end;

	rules->bounded += begins;
	rules->is_bounded = begins || (rules->is_bounded && (suspension->is_on || now < end));
	verdict->suspends = verdict->suspends && !rules->is_bounded;
	if (suspension->is_on ? gpus > 1 : rules->is_bounded)
		verdict->until = min_u64(verdict->until, end);
}

/* `verdict` has the answer of the quota. A slice for a lower priority is shorter than a slice among equals. */
static void ask_rank(struct rules *rules, uint64_t now, const struct rules_view *view,
                     const struct suspension *suspension, const struct rivals *rivals, struct rules_verdict *verdict)
{
	struct rules_verdict of_priority = priority_ask(&rules->priority, now, view->wants, suspension, rivals);
	bool is_held = (verdict->suspends || of_priority.suspends) && suspension->is_on;
	struct rules_verdict of_weight = weight_ask(&rules->weight, now, view, is_held, suspension, rivals);

	verdict->suspends = verdict->suspends || of_priority.suspends || of_weight.suspends;
	verdict->slice_us = rivals->has_higher ? of_priority.slice_us
	                                       : max_u64(of_priority.slice_us, of_weight.slice_us);
	verdict->until = min_u64(verdict->until, of_priority.until);
	if (view->wants || suspension->is_on)
		verdict->until = min_u64(verdict->until, now + (rivals->has_higher || rivals->equals_wanting > 0
		                                                ? RULES_LOOK_NS : RULES_ALONE_NS));
}

struct rules_verdict rules_ask(struct rules *rules, uint64_t now, const struct rules_view *view,
                               const struct suspension *suspension, const struct rivals *rivals)
{
	struct rules_verdict verdict = {.suspends = false};

	verdict.suspends = quota_ask(&rules->quota, now, view->wants, suspension, &verdict.until);
	verdict.soonest = rivals->any ? now : quota_soonest(&rules->quota, now);
	if (rules_take_part(rules))
		ask_rank(rules, now, view, suspension, rivals, &verdict);
	bound(rules, now, suspension, view->gpus_wanting, &verdict);
	return verdict;
}
