#include "quota.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PERIOD_US 100000

static const struct unit {
	const char *name;
	double us;
} units[] = {{"us", 1}, {"ms", 1e3}, {"s", 1e6}};

#define UNITS (sizeof units / sizeof units[0])

/* A number of digits, also with a point, and what stands behind it; NULL if it is none. */
static const char *parse_number(double *number, const char *text)
{
	size_t length = strspn(text, "0123456789.");
	char *end = NULL;

	*number = text[0] >= '0' && text[0] <= '9' ? strtod(text, &end) : -1;
	return end == text + length ? end : NULL;
}

bool quota_parse_time(double *us, const char *text)
{
	double number;
	const char *rest = parse_number(&number, text);
	bool found = false;

	for (size_t i = 0; i < UNITS && rest && !found; i++) {
		found = strcmp(rest, units[i].name) == 0;
		if (found)
			*us = number * units[i].us;
	}
	return found;
}

static int check(struct segment_quota *quota, double run_us, double period_us, const char *text, struct error *error)
{
	if (!(period_us >= SEGMENT_QUOTA_PERIOD_MIN_US && period_us <= SEGMENT_QUOTA_PERIOD_MAX_US))
		return error_set(error, "--quota %.40s: the period must be 1ms-10s", text);
	if (!(run_us >= SEGMENT_QUOTA_RUN_MIN_US))
		return error_set(error, "--quota %.40s: less than 1ms of the time in each period; --quota %.20s/1s has longer periods",
		                 text, strchr(text, '%') ? "1%" : "1ms");
	if (run_us > period_us)
		return error_set(error, "--quota %.40s: more time than the period has", text);
	quota->run_us = (uint32_t)(run_us + 0.5);
	quota->period_us = (uint32_t)(period_us + 0.5);
	return 0;
}

int quota_parse(struct segment_quota *quota, const char *text, struct error *error)
{
	double run_us = 0, period_us = PERIOD_US, percent;
	const char *slash = strchr(text, '/');
	char run[32];

	if (strcmp(text, "max") == 0) {
		*quota = (struct segment_quota){.run_us = PERIOD_US, .period_us = PERIOD_US};
		return 0;
	}
	snprintf(run, sizeof run, "%.*s", (int)(slash ? slash - text : 31), text);
	const char *rest = parse_number(&percent, run);
	bool is_share = rest && strcmp(rest, "%") == 0;

	if ((slash && !quota_parse_time(&period_us, slash + 1)) || (!is_share && !quota_parse_time(&run_us, run)))
		return error_set(error, "--quota %.40s: must be RUN[/PERIOD], such as 30%% or 30ms/100ms, or 'max'", text);
	if (is_share)
		run_us = percent / 100 * period_us;
	return check(quota, run_us, period_us, text, error);
}

int quota_format_time(char *text, size_t room, uint32_t us)
{
	const char *unit = us % 1000000 == 0 ? "s" : us % 1000 == 0 ? "ms" : "us";

	return snprintf(text, room, "%u%s", us % 1000000 == 0 ? us / 1000000 : us % 1000 == 0 ? us / 1000 : us, unit);
}

const char *quota_format(struct segment_quota quota, char text[QUOTA_TEXT])
{
	if (!segment_quota_limits(quota)) {
		strcpy(text, "max");
	} else {
		int length = quota_format_time(text, QUOTA_TEXT, quota.run_us);

		text[length++] = '/';
		quota_format_time(text + length, QUOTA_TEXT - (size_t)length, quota.period_us);
	}
	return text;
}
