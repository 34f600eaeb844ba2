#include "time_given.h"

#include <inttypes.h>
#include <stdio.h>

const char *time_name(enum time_kind kind)
{
	static const char *const names[TIME_KINDS] = {"quota", "priority", "weight"};

	return names[kind];
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
	case TIME_KINDS:
		break;
	}
	return is_given ? text : NULL;
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

/* How often it was taken back although it was still to wait. */
static int describe_bounds(uint64_t bounded, char *text, size_t room)
{
	return bounded == 0 ? 0
	                    : snprintf(text, room, ", back before its time %" PRIu64 " %s: work of its own was in flight on "
	                                           "another GPU", bounded, bounded == 1 ? "time" : "times");
}

const char *time_describe(const struct segment_revision *revision, const struct segment_time *time, char text[TIME_USE])
{
	bool is_used = time->state == SEGMENT_TIME_IN_FORCE || time->present_us > 0;
	int length = 0;

	text[0] = '\0';
	if (is_used)
		length = snprintf(text, TIME_USE, ": present for %.1f s, put aside for %.1f s", (double)time->present_us / 1e6,
		                  (double)time->aside_us / 1e6);
	if (is_used)
		length += describe_bounds(time->bounded, text + length, TIME_USE - (size_t)length);
	if (segment_time_limits(revision) && time->state != SEGMENT_TIME_IN_FORCE)
		snprintf(text + length, TIME_USE - (size_t)length, "%s %s", is_used ? ";" : ":",
		         segment_time_text(time->state == SEGMENT_TIME_NONE ? SEGMENT_TIME_PENDING : time->state));
	return text;
}
