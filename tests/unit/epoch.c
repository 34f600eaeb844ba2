/* The epoch of cached decisions (src/launch/space/epoch.h), and the gate's answers (src/launch/launch.h). */
#include "../cases.h"
#include "launch/launch.h"

static _Atomic uint64_t edits;

FIXTURE(begin)
{
	edits = 7;
	epoch_sources = (struct epoch_sources){.edits = &edits, .group_edits = &edits};
}

static bool matches(const struct frame *frame)
{
	return frame->recent.epoch == epoch_now();
}

/* After years, the bits of cached decisions are still no part of the epoch. */
TEST(a_raise_changes_no_bit_of_a_decision)
{
	atomic_store(&epoch_sources.invalidations, EPOCH_OTHER - EPOCH_STEP);
	uint64_t before = epoch_now();

	epoch_raise();
	assert_int_not_equal(epoch_now(), before);
	assert_int_equal(epoch_now() & (EPOCH_OTHER | EPOCH_KEPT), 0);
}

TEST(a_decision_is_for_calls_with_the_same_answer)
{
	struct frame frame = {.recent = {.epoch = epoch_now(), .more = {{0xff}}}, .more = {{0xff}}};

	launch_enter_call(&frame);
	assert_true(matches(&frame));
	frame.has_more = true;
	launch_enter_call(&frame);
	assert_false(matches(&frame));
	frame.recent = (struct recent){.epoch = epoch_now(), .has_more = true, .more = frame.more};
	launch_leave_call(&frame);
	assert_false(matches(&frame));
	launch_enter_call(&frame);
	assert_true(matches(&frame));
	frame.more = (struct tpcset){{0xf}};
	launch_enter_call(&frame);
	assert_false(matches(&frame));
}

RUN_TESTS_IN(NULL, NULL, begin, NULL)
