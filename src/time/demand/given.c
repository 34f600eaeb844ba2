#include "given.h"

#include "company.h"
#include "state/group/budget.h"

#include <string.h>
#include <unistd.h>

static struct rules rules;
static struct budget own;     /* the account of the program alone */
static struct budget *shared; /* the account of the group; NULL: none, or not in reach */
static bool is_wanted;        /* the program was given rules, and not only marked (company.h) */
static struct board_claim self; /* the claim on each GPU */

void given_forget(void)
{
	budget_close(shared);
	shared = NULL;
}

void given_begin(void)
{
	memset(&rules, 0, sizeof rules);
	memset(&own, 0, sizeof own);
}

/* Never 0. */
static uint64_t number_of(struct group_identity identity)
{
	return (identity.inode ^ identity.device << 32) | UINT64_C(1) << 63;
}

void given_follow(const struct segment *segment, const struct segment_revision *revision, uint64_t now)
{
	uint32_t priority = segment_rank_priority(revision->rank), weight = segment_rank_weight(revision->rank);
	struct segment_revision of_group;
	uint64_t number;
	bool has_group = group_read(&segment->group, &of_group, &number);

	if (has_group && !shared)
		shared = budget_open(&segment->group, segment_group_descriptor(segment));
	has_group = has_group && shared;
	bool shares_quota = has_group && of_group.quota.run_us == revision->quota.run_us &&
	                    of_group.quota.period_us == revision->quota.period_us;
	bool shares_time = has_group && segment_rank_priority(of_group.rank) == priority &&
	                   segment_rank_weight(of_group.rank) == weight;

	self = (struct board_claim){
		.priority = priority,
		.weight = weight,
		.group = shares_time ? number_of(segment->group.identity) : (uint64_t)getpid(),
		.segment = (uint64_t)segment->file,
		.inode = segment->file >= 0 ? segment->inode : 0,
	};
	is_wanted = !segment_has_company(segment) || revision->quota.period_us > 0 || segment_shares(revision) ||
	            company_is_number(priority, weight);
	rules_use(&rules, revision, shares_quota ? shared : &own, shares_time ? &shared->served : &own.served, now);
}

struct rules *given_rules(void)
{
	return &rules;
}

struct board_claim given_self(void)
{
	self.served_ns = weight_served(&rules.weight);
	return self;
}

bool given_is_wanted(void)
{
	return is_wanted;
}
