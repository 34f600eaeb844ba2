#include "rules.h"

#include "quota.h"
#include "state/budget.h"

static struct quota quota;
static struct budget *budget; /* of its group, once the quota was the group's */

bool rules_limit(const struct segment_revision *revision)
{
	return segment_quota_limits(revision->quota);
}

void rules_forget(void)
{
	budget_close(budget);
	budget = NULL;
}

void rules_reset(void)
{
	quota = (struct quota){.period_ns = 0};
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

void rules_follow(const struct segment *segment, const struct segment_revision *revision, uint64_t now)
{
	int64_t run_ns = (int64_t)revision->quota.run_us * 1000, period_ns = (int64_t)revision->quota.period_us * 1000;
	struct budget *shared = find_budget(segment, revision->quota);

	if (quota.run_ns != run_ns || quota.period_ns != period_ns || quota.budget != shared)
		quota_begin(&quota, run_ns, period_ns, shared, now);
}

struct wish rules_ask(uint64_t now, bool wants)
{
	struct wish wish;

	wish.is_aside = quota_step(&quota, now, wants, &wish.until);
	wish.soonest = quota_soonest(&quota, now);
	return wish;
}

void rules_put_aside(uint64_t begin, uint64_t end)
{
	quota_was_put_aside(&quota, begin, end);
}

void rules_taken_back(uint64_t end)
{
	quota_was_taken_back(&quota, end);
}

void rules_tell(const struct segment *segment)
{
	segment_set_time_used(segment, quota.present_ns / 1000, quota.aside_ns / 1000, 0);
}
