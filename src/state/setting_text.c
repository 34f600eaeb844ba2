#include "setting_text.h"

#include "base/extremes.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PERIOD_US 100000 /* of a quota without a period */

struct passage;

struct row {
	const char *name;
	size_t at; /* in a revision */
	uint32_t least, most;
	int (*parse)(const struct passage *it);
	void (*format)(const struct passage *it, char *text);
	double (*number)(const struct passage *it); /* or NULL: no number */
};

/* One setting, on the way from or to text. */
struct passage {
	const struct row *row;
	bool is_plain;
	const struct segment_revision *from;
	struct segment_revision *to;
	const char *text; /* or NULL: an option without a value */
	struct error *error;
};

/* --- numbers with units ------------------------------------------------------------------------------------------- */

/* A number of digits, also with a point. Returns the rest of the text, or NULL without a number. */
static const char *parse_decimal(double *number, const char *text)
{
	size_t length = strspn(text, "0123456789.");
	char *end = NULL;

	*number = text[0] >= '0' && text[0] <= '9' ? strtod(text, &end) : -1;
	return end == text + length ? end : NULL;
}

static const struct {
	const char *name;
	uint32_t us;
} units_of_time[] = {{"us", 1}, {"ms", 1000}, {"s", 1000000}};

/* "30ms", up to the end of the text; plain: "30000". */
static bool parse_time(double *us, const char *text, bool is_plain)
{
	double number;
	const char *rest = parse_decimal(&number, text);
	bool found = is_plain && rest && rest[0] == '\0';

	if (found)
		*us = number;
	for (size_t i = 0; i < 3 && rest && !found; i++) {
		found = strcmp(rest, units_of_time[i].name) == 0;
		if (found)
			*us = number * units_of_time[i].us;
	}
	return found;
}

static int format_time(char *text, uint32_t us, bool is_plain)
{
	int unit = us % 1000000 == 0 ? 2 : us % 1000 == 0 ? 1 : 0;

	return is_plain ? sprintf(text, "%u", us)
	                : sprintf(text, "%u%s", us / units_of_time[unit].us, units_of_time[unit].name);
}

static const char units_of_memory[] = "KMGT";

const char *setting_format_memory(uint64_t bytes, char text[MEMORY_TEXT])
{
	double value = (double)bytes / 1024;
	size_t unit = 0;

	for (; value >= 1024 && unit < 3; unit++)
		value /= 1024;
	snprintf(text, MEMORY_TEXT, "%.*f%c", value < 100 && value != (double)(uint64_t)value, value,
	         units_of_memory[unit]);
	return bytes > 0 ? text : "0";
}

/* --- kinds of settings -------------------------------------------------------------------------------------------- */

static bool is_off(const char *text)
{
	return strcmp(text, "max") == 0 || strcmp(text, "off") == 0;
}

/* "30%", "30ms", "30ms/100ms" or "30%/1s". */
static int parse_quota(const struct passage *it)
{
	double run_us = PERIOD_US, period_us = PERIOD_US, percent;
	const char *slash = strchr(it->text, '/');
	char run[32];

	snprintf(run, sizeof run, "%.*s", (int)(slash ? slash - it->text : 31), it->text);
	const char *rest = parse_decimal(&percent, run);
	bool is_share = rest && strcmp(rest, "%") == 0;

	if (!is_off(it->text) && ((slash && !parse_time(&period_us, slash + 1, it->is_plain)) ||
	                          (!is_share && !parse_time(&run_us, run, it->is_plain))))
		return error_set(it->error, "must be RUN[/PERIOD], such as 30%% or 30ms/100ms, or 'max'");
	if (!(period_us >= SEGMENT_QUOTA_PERIOD_MIN_US && period_us <= SEGMENT_QUOTA_PERIOD_MAX_US))
		return error_set(it->error, "the period must be 1ms-10s");
	if (is_share)
		run_us = percent / 100 * period_us;
	if (!(run_us >= SEGMENT_QUOTA_RUN_MIN_US))
		return error_set(it->error,
		                 "less than 1ms of the time in each period; --quota %s/1s has longer periods",
		                 is_share ? "1%" : "1ms");
	if (run_us > period_us && !it->is_plain)
		return error_set(it->error, "more time than the period has");
	it->to->quota = (struct segment_quota){.run_us = (uint32_t)(min_double(run_us, period_us) + 0.5),
	                                       .period_us = (uint32_t)(period_us + 0.5)};
	return 0;
}

static void format_quota(const struct passage *it, char *text)
{
	bool limits = segment_quota_limits(it->from->quota);
	struct segment_quota quota = limits ? segment_quota_in_range(it->from->quota)
	                                    : (struct segment_quota){.run_us = PERIOD_US, .period_us = PERIOD_US};
	int length = format_time(text, quota.run_us, it->is_plain);

	text[length] = '/';
	format_time(text + length + 1, quota.period_us, it->is_plain);
	if (!limits && !it->is_plain)
		strcpy(text, "max");
}

static double number_of_quota(const struct passage *it)
{
	struct segment_quota quota = it->from->quota;

	return segment_quota_limits(quota) ? (double)quota.run_us / quota.period_us : 1;
}

/* 16 bits, 1 for the least number. */
static int parse_number(const struct passage *it)
{
	char *end;
	unsigned long number = strtoul(it->text, &end, 10);

	if (it->text[0] < '0' || it->text[0] > '9' || *end != '\0' || number < it->row->least ||
	    number > it->row->most)
		return error_set(it->error, "must be %u-%u", it->row->least, it->row->most);
	uint16_t stored = (uint16_t)(number - it->row->least + 1);

	memcpy((char *)it->to + it->row->at, &stored, sizeof stored);
	return 0;
}

static double number_of_number(const struct passage *it)
{
	uint16_t stored;

	memcpy(&stored, (const char *)it->from + it->row->at, sizeof stored);
	return segment_within(stored - 1u + it->row->least, it->row->least, it->row->most);
}

static void format_number(const struct passage *it, char *text)
{
	sprintf(text, "%.0f", number_of_number(it));
}

/* "2ms". */
static int parse_limit(const struct passage *it)
{
	double us = SEGMENT_LEND_USUAL_US;
	bool ends = it->text && (strcmp(it->text, "off") == 0 || strcmp(it->text, "0") == 0);

	if (it->text && !ends &&
	    (!parse_time(&us, it->text, it->is_plain) || us < SEGMENT_LEND_MIN_US || us > SEGMENT_LEND_MAX_US))
		return error_set(it->error, "must be 100us-1s, such as 2ms, or 'off'");
	it->to->lending.lend_us = ends ? SEGMENT_LEND_OFF : (uint32_t)(us + 0.5);
	return 0;
}

static double number_of_limit(const struct passage *it)
{
	return segment_lends_us(&it->from->lending);
}

static void format_limit(const struct passage *it, char *text)
{
	uint32_t us = segment_lends_us(&it->from->lending);

	if (us > 0 || it->is_plain)
		format_time(text, us, it->is_plain);
	else
		strcpy(text, "off");
}

static int parse_tpcs(const struct passage *it)
{
	bool is_all = !it->text || strcmp(it->text, "all") == 0;
	bool ends = !is_all && strcmp(it->text, it->is_plain ? "" : "off") == 0;
	struct tpcset set = segment_borrow_all;

	if (!is_all && !ends && tpcset_parse_list(&set, it->text, TPCSET_MAX, "TPC", it->error) < 0)
		return -1;
	it->to->lending.borrows = ends ? SEGMENT_BORROW_OFF : SEGMENT_BORROW_SET;
	it->to->lending.borrow = set;
	return 0;
}

#define number_of_tpcs NULL

static void format_tpcs(const struct passage *it, char *text)
{
	const struct segment_lending *lending = &it->from->lending;

	if (!segment_borrows(lending))
		strcpy(text, it->is_plain ? "" : "off");
	else if (!it->is_plain && tpcset_equal(&lending->borrow, &segment_borrow_all))
		strcpy(text, "all");
	else
		tpcset_format_list(&lending->borrow, text);
}

/* "512M", always with a unit, a power of 1024. */
static int parse_bytes(const struct passage *it)
{
	const size_t digits = strspn(it->text, "0123456789"), most = it->is_plain ? 19 : 9;
	const uint64_t number = digits > 0 && digits <= most ? strtoull(it->text, NULL, 10) : 0;
	const char *rest = it->text + digits, *unit = rest[0] ? strchr(units_of_memory + 1, rest[0]) : NULL;
	const int bits = unit ? 10 * (int)(unit - units_of_memory + 1) : 0;
	bool ends = is_off(it->text) || (it->is_plain && strcmp(it->text, "0") == 0);
	bool is_whole = it->is_plain ? rest[0] == '\0' : unit && rest[1] == '\0';
	bool fits = is_whole && number <= (uint64_t)INT64_MAX >> bits;

	if (!ends && (number == 0 || !fits))
		return error_set(it->error, "must be a whole number and M, G or T (powers of 1024), such as 512M or "
		                            "2G, or 'max'");
	it->to->memory = ends ? SEGMENT_MEMORY_OFF : number << bits;
	return 0;
}

static double number_of_bytes(const struct passage *it)
{
	return segment_memory_is_limited(it->from) ? (double)it->from->memory : -1;
}

static void format_bytes(const struct passage *it, char *text)
{
	char amount[MEMORY_TEXT];

	if (it->is_plain)
		sprintf(text, "%" PRIu64,
		        segment_memory_is_limited(it->from) ? min_u64(it->from->memory, INT64_MAX) : 0);
	else
		strcpy(text, segment_memory_is_limited(it->from) ? setting_format_memory(it->from->memory,
		                                                                         amount) : "max");
}

/* --- the table ---------------------------------------------------------------------------------------------------- */

static const struct row rows[SETTING_COUNT] = {
#define ROW(identifier, name, kind, member, behind, least, most, ...)                                   \
	{name, offsetof(struct segment_revision, member), least, most, parse_##kind, format_##kind, number_of_##kind},
	SETTINGS(ROW)
};

const char *setting_name(enum setting setting)
{
	return rows[setting].name;
}

int setting_parse(struct segment_revision *revision, enum setting setting, const char *text, enum setting_text how,
                  struct error *error)
{
	const struct passage it = {&rows[setting], how == SETTING_PLAIN, NULL, revision, text, error};

	return it.row->parse(&it);
}

const char *setting_format(const struct segment_revision *revision, enum setting setting, enum setting_text how,
                           char text[SETTING_TEXT])
{
	const struct passage it = {.row = &rows[setting], .is_plain = how == SETTING_PLAIN, .from = revision};
	bool is_given = revision_gives(revision, setting);

	if (is_given)
		it.row->format(&it, text);
	return is_given ? text : NULL;
}

double setting_number(const struct segment_revision *revision, enum setting setting)
{
	const struct passage it = {.row = &rows[setting], .from = revision};

	return revision_gives(revision, setting) && it.row->number ? it.row->number(&it) : -1;
}
