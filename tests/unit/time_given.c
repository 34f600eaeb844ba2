/* What was given of the time, as it is shown: values, options, and what became of it. */
#include "../cases.h"
#include "../../tools/nvtaskset/cli/time_given.h"

#define QUOTA {.run_us = 30000, .period_us = 100000}
#define MAX {.run_us = 100000, .period_us = 100000}

static const struct segment_revision nothing;
static const struct segment_revision quota = {.quota = QUOTA};
static const struct segment_revision lifted = {.quota = MAX};
static const struct segment_revision priority = {.rank.priority = 1 + 80};
static const struct segment_revision weight = {.rank.weight = 200};
static const struct segment_revision lends = {.lending.lend_us = 2000};
static const struct segment_revision all = {.quota = QUOTA, .rank = {1, 10000, 0}};

static void assert_all(const struct segment_revision *revision, const char *values, const char *options)
{
	char text[TIME_LINE];

	assert_string_equal(time_format_all(revision, text), values);
	assert_string_equal(time_options(revision, text), options);
}

TEST(values_and_options)
{
	char text[SETTING_TEXT];

	assert_all(&nothing, "", "");
	assert_all(&lifted, "quota max", "--quota");
	assert_all(&priority, "priority 80", "--priority");
	assert_all(&weight, "weight 200", "--weight");
	assert_all(&lends, "lend 2ms", "--lend");
	assert_all(&all, "quota 30ms/100ms, priority 0, weight 10000", "--quota, --priority, --weight");
	assert_null(setting_format(&priority, SETTING_WEIGHT, SETTING_FOR_PEOPLE, text));
	assert_null(setting_format(&weight, SETTING_PRIORITY, SETTING_FOR_PEOPLE, text));
	assert_string_equal(setting_format(&all, SETTING_PRIORITY, SETTING_FOR_PEOPLE, text), "0");
}

static void assert_described(const struct segment_revision *revision, struct segment_time time, const char *expected)
{
	char text[TIME_USE];

	assert_string_equal(time_describe(revision, &time, text), expected);
}

TEST(what_became_of_it)
{
	const struct segment_time used = {.state = SEGMENT_TIME_IN_FORCE, .present_us = 1200000, .aside_us = 2800000};
	struct segment_time bounded = used, most = {.state = SEGMENT_TIME_PAGEABLE, .present_us = UINT64_MAX};
	char text[TIME_USE];

	assert_described(&priority, (struct segment_time){.state = SEGMENT_TIME_NONE}, ": it holds from the program's next call on");
	assert_described(&lifted, (struct segment_time){.state = SEGMENT_TIME_NONE}, "");
	assert_described(&weight, used, ": present for 1.2 s, suspended for 2.8 s");
	bounded.bounded = 1;
	assert_described(&weight, bounded,
	                 ": present for 1.2 s, suspended for 2.8 s, resumed early 1 time: work of its own was in flight on another GPU");
	bounded.bounded = 12;
	bounded.state = SEGMENT_TIME_PENDING;
	assert_described(&quota, bounded,
	                 ": present for 1.2 s, suspended for 2.8 s, resumed early 12 times: work of its own was in flight on "
	                 "another GPU; it holds from the program's next call on");
	/* A process can write anything there. */
	most.aside_us = most.bounded = UINT64_MAX;
	assert_true(strlen(time_describe(&all, &most, text)) < TIME_USE - 1);
	assert_non_null(strstr(text, segment_time_text(SEGMENT_TIME_PAGEABLE)));
}

/* Of a client of MPS. */
TEST(what_became_of_held_launches)
{
	struct segment_time time = {.state = SEGMENT_TIME_HELD, .present_us = 1200000};
	char text[TIME_USE];

	assert_described(&priority, time, ": on the GPUs for 1.2 s, held back for 0.0 s");
	time.aside_us = 2800000;
	time.held = time.bounded = 1;
	assert_described(&quota, time, ": on the GPUs for 1.2 s, held back for 2.8 s (1 launch), let go by a bound 1 time");
	time.held = 35;
	time.bounded = 12;
	assert_described(&quota, time, ": on the GPUs for 1.2 s, held back for 2.8 s (35 launches), let go by a bound 12 times");
	time.state = SEGMENT_TIME_WEAK;
	assert_non_null(strstr(time_describe(&quota, &time, text), "12 times; the quota is weak: "));
	assert_null(time_refusal(&time, &quota));
	time.state = SEGMENT_TIME_UNLIMITED;
	assert_described(&lifted, time, ": on the GPUs for 1.2 s, held back for 2.8 s (35 launches), let go by a bound 12 times");
	time = (struct segment_time){SEGMENT_TIME_PAGEABLE, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX};
	assert_true(strlen(time_describe(&all, &time, text)) < TIME_USE - 1);
	assert_non_null(strstr(text, segment_time_text(SEGMENT_TIME_PAGEABLE)));
}

/* As of a borrower that finds nothing to borrow. */
TEST(a_remark_of_a_setting_in_force)
{
	struct segment_time time = {.state = SEGMENT_TIME_HOST_BOUND};
	char text[TIME_USE];

	assert_true(segment_time_is_in_force(SEGMENT_TIME_HOST_BOUND));
	assert_true(segment_time_is_in_force(SEGMENT_TIME_TOO_LONG));
	assert_false(segment_time_is_in_force(SEGMENT_TIME_MPS_GONE));
	assert_non_null(strstr(time_describe(&all, &time, text), segment_time_text(SEGMENT_TIME_HOST_BOUND)));
	time.state = SEGMENT_TIME_HELD;
	assert_null(strstr(time_describe(&all, &time, text), segment_time_text(SEGMENT_TIME_HELD)));
}

/* Suspension has what held launches have not, and held launches what suspension has not. */
TEST(what_holds)
{
	for (enum setting setting = 0; setting < SETTING_MEMORY; setting++) {
		assert_false(time_holds(&all, SEGMENT_TIME_PENDING, setting));
		assert_false(time_holds(&all, SEGMENT_TIME_MPS_CLIENT, setting));
		assert_int_equal(time_holds(&all, SEGMENT_TIME_IN_FORCE, setting), setting < SETTING_LEND);
		assert_int_equal(time_holds(&all, SEGMENT_TIME_HELD, setting), setting != SETTING_WEIGHT);
		assert_int_equal(time_holds(&all, SEGMENT_TIME_HOST_BOUND, setting), setting != SETTING_WEIGHT);
	}
	assert_true(time_holds(&all, SEGMENT_TIME_PENDING, SETTING_MEMORY));
	assert_true(time_holds(&lifted, SEGMENT_TIME_UNLIMITED, SETTING_QUOTA));
	/* A quota needs nobody else. */
	assert_true(time_holds(&all, SEGMENT_TIME_NO_PLACE, SETTING_QUOTA));
	assert_false(time_holds(&all, SEGMENT_TIME_NO_PLACE, SETTING_PRIORITY));
	assert_false(time_holds(&all, SEGMENT_TIME_NO_PLACE, SETTING_LEND));
	assert_false(time_holds(&lends, SEGMENT_TIME_UNLIMITED, SETTING_LEND));
}

static bool refuses(const struct segment_revision *revision, enum segment_time_state state)
{
	const struct segment_time time = {.state = state};

	return time_refusal(&time, revision);
}

/* To a program that cannot be suspended others still give way. */
TEST(what_is_refused)
{
	const enum segment_time_state in_part[] = {SEGMENT_TIME_MANAGED, SEGMENT_TIME_SHARED, SEGMENT_TIME_OLDER,
	                                           SEGMENT_TIME_MPS_CLIENT, SEGMENT_TIME_PAGEABLE, SEGMENT_TIME_CHANGING};
	const enum segment_time_state not_at_all[] = {SEGMENT_TIME_UNREACHABLE, SEGMENT_TIME_NO_THREAD, SEGMENT_TIME_UNCOUNTED,
	                                              SEGMENT_TIME_NO_PLACE};

	for (size_t i = 0; i < COUNT_OF(in_part); i++) {
		assert_false(refuses(&priority, in_part[i]));
		assert_true(refuses(&weight, in_part[i]));
		assert_true(refuses(&quota, in_part[i]));
		assert_true(refuses(&all, in_part[i]));
		assert_false(refuses(&lifted, in_part[i]));
	}
	for (size_t i = 0; i < COUNT_OF(not_at_all); i++)
		assert_true(refuses(&priority, not_at_all[i]));
	assert_false(refuses(&all, SEGMENT_TIME_PENDING));
	assert_false(refuses(&all, SEGMENT_TIME_IN_FORCE));
	assert_false(refuses(&all, SEGMENT_TIME_HELD));
	assert_false(refuses(&nothing, SEGMENT_TIME_UNREACHABLE));
}

RUN_TESTS(NULL, NULL)
