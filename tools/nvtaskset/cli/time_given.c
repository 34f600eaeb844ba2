#include "time_given.h"

#include "base/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define WAIT_MS 10

/* --- as text ------------------------------------------------------------------------------------------------------ */

bool time_holds(const struct segment_revision *revision, enum segment_time_state state, enum setting setting)
{
	bool holds = segment_time_is_in_force(state);

	if (setting == SETTING_QUOTA)
		holds = holds || state == SEGMENT_TIME_NO_PLACE || !segment_quota_limits(revision->quota);
	else if (setting == SETTING_WEIGHT)
		holds = state == SEGMENT_TIME_IN_FORCE;
	else if (setting == SETTING_LEND || setting == SETTING_BORROW)
		holds = segment_time_holds_launches(state);
	return holds || setting == SETTING_MEMORY;
}

/* "quota 30ms/100ms, priority 80", or without values, with `before` in front of each name. */
static const char *join(const struct segment_revision *revision, const char *before, bool has_values,
                        char text[TIME_LINE])
{
	char value[SETTING_TEXT];
	int length = 0;

	text[0] = '\0';
	for (enum setting setting = 0; setting < (has_values ? SETTING_COUNT : SETTING_MEMORY); setting++) {
		if (setting_format(revision, setting, SETTING_FOR_PEOPLE, value))
			length += snprintf(text + length, TIME_LINE - (size_t)length, "%s%s%s%s%s",
			                   length > 0 ? ", " : "", before, setting_name(setting), has_values ? " " : "",
			                   has_values ? value : "");
	}
	return text;
}

const char *time_format_all(const struct segment_revision *revision, char text[TIME_LINE])
{
	return join(revision, "", true, text);
}

const char *time_options(const struct segment_revision *revision, char text[TIME_LINE])
{
	return join(revision, "--", false, text);
}

void time_tell_way(const struct options *options, const char *who)
{
	const struct segment_revision *time = &options->settings;
	char names[TIME_LINE];

	if (options->mps_given)
		return;
	if (segment_shares(time))
		fprintf(stderr, "nvtaskset: %s: under MPS, TPCs are lent (--mps auto)\n", time_options(time, names));
	else if (segment_time_limits(time) && options->mps.mode == MPS_OFF)
		fprintf(stderr, "nvtaskset: %s: without MPS, %s take turns on the GPU (--mps off)\n",
		        time_options(time, names), who);
}

/* How often a bound resumed the program, or let a launch go, before its turn. */
static int describe_bounds(uint64_t bounded, bool is_held, char *text, size_t room)
{
	const char *times = bounded == 1 ? "time" : "times";
	int length = 0;

	if (bounded > 0 && is_held)
		length = snprintf(text, room, ", let go by a bound %" PRIu64 " %s", bounded, times);
	else if (bounded > 0)
		length = snprintf(text, room, ", resumed early %" PRIu64 " %s: work of its own was in flight on "
		                                                         "another GPU", bounded, times);
	return length;
}

static int describe_held(uint64_t held, char *text, size_t room)
{
	return held == 0 ? 0 : snprintf(text, room, " (%" PRIu64 " %s)", held, held == 1 ? "launch" : "launches");
}

static int describe_use(const struct segment_time *time, char text[TIME_USE])
{
	bool is_held = segment_time_holds_launches(time->state) || time->held > 0;
	int length = snprintf(text, TIME_USE, ": %s for %.1f s, %s for %.1f s", is_held ? "on the GPUs" : "present",
	                      (double)time->present_us / 1e6, is_held ? "held back" : "suspended",
	                      (double)time->aside_us / 1e6);

	length += describe_held(time->held, text + length, TIME_USE - (size_t)length);
	return length + describe_bounds(time->bounded, is_held, text + length, TIME_USE - (size_t)length);
}

const char *time_describe(const struct segment_revision *revision, const struct segment_time *time, char text[TIME_USE])
{
	bool is_used = segment_time_is_in_force(time->state) || time->present_us > 0;
	bool has_remark = time->state != SEGMENT_TIME_IN_FORCE && time->state != SEGMENT_TIME_HELD;
	int length = 0;

	text[0] = '\0';
	if (is_used)
		length = describe_use(time, text);
	if (segment_time_limits(revision) && has_remark)
		snprintf(text + length, TIME_USE - (size_t)length, "%s %s", is_used ? ";" : ":",
		         segment_time_text(time->state == SEGMENT_TIME_NONE ? SEGMENT_TIME_PENDING : time->state));
	return text;
}

/* --- state -------------------------------------------------------------------------------------------------------- */

double time_wait_end(void)
{
	return clock_ms() + WAIT_MS;
}

static bool is_seen(const struct segment *segment)
{
	struct segment_time time;

	segment_read_time(segment, &time);
	return time.number >= segment_revision_number(segment) && time.state != SEGMENT_TIME_PENDING;
}

void time_wait(const struct segment *segment, double end_ms)
{
	while (!is_seen(segment) && clock_ms() < end_ms)
		clock_pause_us(1000);
}

/* Whether programs give way to a program in this state, which is never suspended itself. */
static bool can_go_first(enum segment_time_state state)
{
	return state == SEGMENT_TIME_MANAGED || state == SEGMENT_TIME_SHARED || state == SEGMENT_TIME_OLDER ||
	       state == SEGMENT_TIME_MPS_CLIENT || state == SEGMENT_TIME_PAGEABLE || state == SEGMENT_TIME_UNSEEN ||
	       state == SEGMENT_TIME_CHANGING;
}

/* A priority holds in part where only suspending is impossible. */
static bool is_refused(enum segment_time_state state, const struct segment_revision *revision)
{
	bool has_priority_only = !segment_quota_limits(revision->quota) && revision->rank.weight == 0;
	bool may_hold = state <= SEGMENT_TIME_HELD || segment_time_is_in_force(state);

	return !may_hold && !(has_priority_only && can_go_first(state));
}

const char *time_refusal(const struct segment_time *time, const struct segment_revision *revision)
{
	return segment_time_limits(revision) && is_refused(time->state, revision) ? segment_time_text(time->state)
	                                                                          : NULL;
}
