/* On which account a process's rules are kept: its group's, if they are the group's, or its own. */
#include "../cases.h"
#include "state/group/find.h"
#include "state/segment/owner.h"
#include "time/demand/given.h"

static const struct segment_revision ours = {
	.quota = {.run_us = 30000, .period_us = 100000},
	.rank = {.priority = 51, .weight = 300},
};

static struct segment segment;

#define THEN UINT64_C(10000000000) /* when a period begins */

/* Its child is in the same group, as the processes that a command starts are. */
FIXTURE(join_group)
{
	struct group group;
	struct error error;

	assert_int_equal(group_create(&group, "", &ours, &error), 0);
	int descriptor = group_keep(&group, (struct group_identity){0}, -1);

	assert_true(descriptor >= 0);
	assert_int_equal(segment_create(&segment, &ours, &group, descriptor, -1, &error), 0);
	given_begin();
}

FIXTURE(leave_group)
{
	given_forget();
	segment_close(&segment);
}

static void follow(const struct segment_revision *revision)
{
	given_follow(&segment, revision, 1);
}

/* In a process of its own, which has the same group. */
static uint64_t group_of_child(void)
{
	uint64_t *told = mmap(NULL, sizeof *told, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t child = fork();

	if (child == 0) {
		given_forget();
		follow(&ours);
		*told = given_self().group;
		atomic_fetch_add(given_rules()->weight.served, 1000);
		budget_charge(given_rules()->quota.budget, 30000000, 100000000, THEN, THEN + 20000000);
		_exit(0);
	}
	assert_int_equal(waitpid(child, NULL, 0), child);
	return *told;
}

TEST(members_share)
{
	follow(&ours);
	uint64_t served = weight_served(&given_rules()->weight);

	assert_true(given_self().group != (uint64_t)getpid());
	assert_true(given_self().group == group_of_child());
	assert_int_equal(weight_served(&given_rules()->weight) - served, 1000);
	assert_in_range(budget_left(given_rules()->quota.budget, 30000000, 100000000, THEN + 1), 9900000, 10100000);
}

/* One that was given another rank, or another quota, has these alone. */
TEST(one_that_differs)
{
	struct segment_revision revision = ours;

	revision.rank.weight = 200;
	follow(&revision);
	assert_int_equal(given_self().group, getpid());
	assert_int_equal(given_self().inode, segment.inode);
	assert_int_equal(given_self().segment, segment.file);
	assert_true(group_of_child() != (uint64_t)getpid());
	assert_int_equal(weight_served(&given_rules()->weight), 0);
	revision = ours;
	revision.quota.run_us = 20000;
	follow(&revision);
	assert_true(given_self().group != (uint64_t)getpid());
}

RUN_TESTS(join_group, leave_group)
