#include "time_given.h"

#include "state/revision_text.h"
#include "state/segment/segment.h"

#include <inttypes.h>
#include <stdio.h>

const char *time_name(enum time_kind kind)
{
	static const char *const names[TIME_KINDS] = {"quota", "priority", "weight", "policy", "lend", "borrow"};

	return names[kind];
}

static void format_lend(const struct segment_lending *lending, char text[TIME_TEXT])
{
	if (segment_lends_us(lending) > 0)
		quota_format_time(text, TIME_TEXT, segment_lends_us(lending));
	else
		snprintf(text, TIME_TEXT, "off");
}

static void format_borrow(const struct segment_lending *lending, char text[TIME_TEXT])
{
	if (!segment_borrows(lending))
		snprintf(text, TIME_TEXT, "off");
	else if (tpcset_equal(&lending->borrow, &segment_borrow_all))
		snprintf(text, TIME_TEXT, "all");
	else
		tpcset_format_list(&lending->borrow, text);
}

const char *time_format(const struct segment_revision *revision, enum time_kind kind, char text[TIME_TEXT])
{
	bool is_given = false;

	switch (kind) {
	case TIME_QUOTA:
		is_given = revision->quota.period_us > 0;
		quota_format(revision->quota, text);
		break;
	case TIME_PRIORITY:
		is_given = revision->rank.priority > 0;
		snprintf(text, TIME_TEXT, "%u", segment_rank_priority(revision->rank));
		break;
	case TIME_WEIGHT:
		is_given = revision->rank.weight > 0;
		snprintf(text, TIME_TEXT, "%u", segment_rank_weight(revision->rank));
		break;
	case TIME_POLICY:
		is_given = segment_policy_is_given(revision->rank);
		policy_format(revision->rank, text);
		break;
	case TIME_LEND:
		is_given = revision->lending.lend_us > 0;
		format_lend(&revision->lending, text);
		break;
	case TIME_BORROW:
		is_given = revision->lending.borrows > 0;
		format_borrow(&revision->lending, text);
		break;
	case TIME_KINDS:
		break;
	}
	return is_given ? text : NULL;
}

bool time_holds(const struct segment_revision *revision, enum segment_time_state state, enum time_kind kind)
{
	bool holds = segment_time_is_in_force(state);

	if (kind == TIME_QUOTA)
		holds = holds || !segment_quota_limits(revision->quota);
	else if (kind == TIME_WEIGHT)
		holds = state == SEGMENT_TIME_IN_FORCE;
	else if (kind >= TIME_POLICY)
		holds = state == SEGMENT_TIME_HELD || state == SEGMENT_TIME_TOO_LONG;
	return holds;
}

/* "quota 30ms/100ms, priority 80", or without the values, and with something in front of each name. */
static const char *join(const struct segment_revision *revision, const char *before, bool has_values, char text[TIME_LINE])
{
	char value[TIME_TEXT];
	int length = 0;

	text[0] = '\0';
	for (enum time_kind kind = 0; kind < TIME_KINDS; kind++) {
		if (time_format(revision, kind, value))
			length += snprintf(text + length, TIME_LINE - (size_t)length, "%s%s%s%s%s", length > 0 ? ", " : "", before,
			                   time_name(kind), has_values ? " " : "", has_values ? value : "");
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

/* How often it was resumed, or let go, although it was still to wait. */
static int describe_bounds(uint64_t bounded, bool is_held, char *text, size_t room)
{
	const char *times = bounded == 1 ? "time" : "times";
	int length = 0;

	if (bounded > 0 && is_held)
		length = snprintf(text, room, ", let go by a bound %" PRIu64 " %s", bounded, times);
	else if (bounded > 0)
		length = snprintf(text, room, ", resumed early %" PRIu64 " %s: work of its own was in flight on another GPU",
		                  bounded, times);
	return length;
}

static int describe_held(uint64_t held, char *text, size_t room)
{
	return held == 0 ? 0 : snprintf(text, room, " (%" PRIu64 " %s)", held, held == 1 ? "launch" : "launches");
}

/* What was used. */
static int describe_use(const struct segment_time *time, char text[TIME_USE])
{
	bool is_held = time->state == SEGMENT_TIME_HELD || time->held > 0;
	int length = snprintf(text, TIME_USE, ": %s for %.1f s, %s for %.1f s", is_held ? "on the GPUs" : "present",
	                      (double)time->present_us / 1e6, is_held ? "held back" : "suspended", (double)time->aside_us / 1e6);

	length += describe_held(time->held, text + length, TIME_USE - (size_t)length);
	return length + describe_bounds(time->bounded, is_held, text + length, TIME_USE - (size_t)length);
}

const char *time_describe(const struct segment_revision *revision, const struct segment_time *time, char text[TIME_USE])
{
	bool is_in_force = segment_time_is_in_force(time->state), is_used = is_in_force || time->present_us > 0;
	int length = 0;

	text[0] = '\0';
	if (is_used)
		length = describe_use(time, text);
	if (segment_time_limits(revision) && !is_in_force)
		snprintf(text + length, TIME_USE - (size_t)length, "%s %s", is_used ? ";" : ":",
		         segment_time_text(time->state == SEGMENT_TIME_NONE ? SEGMENT_TIME_PENDING : time->state));
	return text;
}
