#include "revision_text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- memory ---------------------------------------------------------------------------------------------------- */

static const char units[] = "KMGT";

int memory_parse(uint64_t *bytes, const char *text, struct error *error)
{
	const size_t digits = strspn(text, "0123456789");
	const uint64_t number = digits > 0 && digits <= 9 ? strtoull(text, NULL, 10) : 0;
	const char *unit = text[digits] ? strchr(units + 1, text[digits]) : NULL;
	int result = 0;

	if (strcmp(text, "max") == 0 || strcmp(text, "off") == 0)
		*bytes = SEGMENT_MEMORY_OFF;
	else if (number == 0 || !unit || text[digits + 1] != '\0')
		result = error_set_code(error, NVTASKSET_ERROR_INVALID,
		                        "must be a whole number and M, G or T (powers of 1024), such as 512M or 2G, "
		                        "or 'max'");
	else
		*bytes = number << 10 * (unit - units + 1);
	return result;
}

const char *memory_format(uint64_t bytes, char text[MEMORY_TEXT])
{
	double value = (double)bytes / 1024;
	size_t unit = 0;

	for (; value >= 1024 && unit < 3; unit++)
		value /= 1024;
	snprintf(text, MEMORY_TEXT, "%.*f%c", value < 100 && value != (double)(uint64_t)value, value, units[unit]);
	return bytes > 0 ? text : "0";
}

/* --- revisions ---------------------------------------------------------------------------------------------------- */

#define QUOTA "quota="
#define PRIORITY "priority="
#define WEIGHT "weight="
#define LEND "lend="     /* in us; 0: off */
#define BORROW "borrow=" /* nothing: off */
#define MEMORY "memory=" /* in bytes; 0: off */

static int parse_quota(struct segment_revision *revision, const char *text, struct error *error)
{
	unsigned int run_us, period_us;
	int length = 0;

	if (sscanf(text, "%9u/%9u%n", &run_us, &period_us, &length) != 2 || text[length] != '\0' || period_us == 0)
		return error_set(error, "%s: '%.40s' is not RUN/PERIOD", SEGMENT_ENVIRONMENT, text);
	revision->quota = (struct segment_quota){.run_us = run_us, .period_us = period_us};
	return 0;
}

static int parse_number(unsigned int *number, const char *text, unsigned int min, unsigned int max, struct error *error)
{
	int length = 0;

	if (sscanf(text, "%9u%n", number, &length) != 1 || text[length] != '\0' || *number < min || *number > max)
		return error_set(error, "%s: '%.40s' is not %u-%u", SEGMENT_ENVIRONMENT, text, min, max);
	return 0;
}

static int parse_priority(struct segment_revision *revision, const char *text, struct error *error)
{
	unsigned int priority;
	int result = parse_number(&priority, text, 0, SEGMENT_PRIORITY_MAX, error);

	if (result == 0)
		revision->rank.priority = segment_rank_of_priority(priority);
	return result;
}

static int parse_weight(struct segment_revision *revision, const char *text, struct error *error)
{
	unsigned int weight;
	int result = parse_number(&weight, text, 1, SEGMENT_WEIGHT_MAX, error);

	if (result == 0)
		revision->rank.weight = (uint16_t)weight;
	return result;
}

static int parse_lend(struct segment_revision *revision, const char *text, struct error *error)
{
	unsigned int us;
	int result = parse_number(&us, text, 0, SEGMENT_LEND_MAX_US, error);

	if (result == 0)
		revision->lending.lend_us = us > 0 ? us : SEGMENT_LEND_OFF;
	return result;
}

static int parse_borrow(struct segment_revision *revision, const char *text, struct error *error)
{
	struct segment_lending *lending = &revision->lending;

	lending->borrows = text[0] != '\0' ? SEGMENT_BORROW_SET : SEGMENT_BORROW_OFF;
	return text[0] != '\0' ? tpcset_parse_list(&lending->borrow, text, TPCSET_MAX, "TPC", error) : 0;
}

static int parse_memory(struct segment_revision *revision, const char *text, struct error *error)
{
	uint64_t bytes;
	int length = 0;

	if (sscanf(text, "%19" SCNu64 "%n", &bytes, &length) != 1 || text[length] != '\0')
		return error_set(error, "%s: '%.40s' is not a number of bytes", SEGMENT_ENVIRONMENT, text);
	revision->memory = bytes > 0 ? bytes : SEGMENT_MEMORY_OFF;
	return 0;
}

/* The settings besides partitions. NULL: of earlier builds, and read over. */
static const struct {
	const char *name;
	int (*parse)(struct segment_revision *revision, const char *text, struct error *error);
} times[] = {{QUOTA, parse_quota}, {PRIORITY, parse_priority}, {WEIGHT, parse_weight}, {"policy=", NULL},
	{LEND, parse_lend}, {BORROW, parse_borrow}, {MEMORY, parse_memory}};

#define TIMES (sizeof times / sizeof times[0])

static size_t find_time(const char *text)
{
	size_t found = 0;

	while (found < TIMES && strncmp(text, times[found].name, strlen(times[found].name)) != 0)
		found++;
	return found;
}

/* A "PCI=LIST", or a setting, of `length` characters. */
static int parse_entry(struct segment_revision *revision, const char *text, size_t length, struct error *error)
{
	char copy[PCI_ADDRESS_TEXT + TPCSET_TEXT];
	struct segment_partition partition;

	if (length >= sizeof copy)
		return error_set(error, "%s: an entry is too long", SEGMENT_ENVIRONMENT);
	memcpy(copy, text, length);
	copy[length] = '\0';
	size_t time = find_time(copy);

	if (time < TIMES && !times[time].parse)
		return 0;
	if (time < TIMES)
		return times[time].parse(revision, copy + strlen(times[time].name), error);
	char *list = strchr(copy, '=');

	if (!list)
		return error_set(error, "%s: '%.40s' is not GPU=TPCs", SEGMENT_ENVIRONMENT, copy);
	*list++ = '\0';
	memset(&partition, 0, sizeof partition);
	if (pci_address_parse(&partition.pci, copy, error) < 0 ||
	    tpcset_parse_list(&partition.set, list, TPCSET_MAX, "TPC", error) < 0)
		return -1;
	return segment_put(revision, &partition, error);
}

int segment_revision_parse(struct segment_revision *revision, const char *text, struct error *error)
{
	const char *at = text;
	int result = 0;

	memset(revision, 0, sizeof *revision);
	while (result == 0 && *at) {
		size_t length = strcspn(at, ";");

		result = parse_entry(revision, at, length, error);
		at += length + (at[length] == ';');
	}
	return result;
}

static size_t add(char text[SEGMENT_ENVIRONMENT_MAX], size_t length, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static size_t add(char text[SEGMENT_ENVIRONMENT_MAX], size_t length, const char *format, ...)
{
	va_list values;

	if (length > 0)
		text[length++] = ';';
	va_start(values, format);
	length += (size_t)vsnprintf(text + length, SEGMENT_ENVIRONMENT_MAX - length, format, values);
	va_end(values);
	return length;
}

const char *segment_revision_format(const struct segment_revision *revision,
                                    char text[SEGMENT_ENVIRONMENT_MAX])
{
	char pci[PCI_ADDRESS_TEXT], list[TPCSET_TEXT];
	size_t length = 0;

	text[0] = '\0';
	for (uint32_t i = 0; i < revision->count; i++)
		length = add(text, length, "%s=%s", pci_address_format(revision->partitions[i].pci, pci),
		             tpcset_format_list(&revision->partitions[i].set, list));
	if (revision->quota.period_us > 0)
		length = add(text, length, QUOTA "%u/%u", revision->quota.run_us, revision->quota.period_us);
	if (revision->rank.priority > 0)
		length = add(text, length, PRIORITY "%u", segment_rank_priority(revision->rank));
	if (revision->rank.weight > 0)
		length = add(text, length, WEIGHT "%u", segment_rank_weight(revision->rank));
	if (revision->lending.lend_us > 0)
		length = add(text, length, LEND "%u", segment_lends_us(&revision->lending));
	if (revision->lending.borrows > 0)
		length = add(text, length, BORROW "%s",
		             segment_borrows(&revision->lending) ? tpcset_format_list(&revision->lending.borrow, list)
		                                                 : "");
	if (revision->memory > 0)
		add(text, length, MEMORY "%" PRIu64, revision->memory == SEGMENT_MEMORY_OFF ? 0 : revision->memory);
	return text;
}
