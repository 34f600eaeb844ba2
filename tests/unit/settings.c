/* The settings of a program as text, for people and plain. */
#include "../cases.h"
#include "state/setting_text.h"

static struct error error;

/* The text of people, the plain text, and the number. */
static const struct {
	enum setting setting;
	const char *people, *plain;
	double number;
} rows[] = {
	{SETTING_QUOTA, "30ms/100ms", "30000/100000", 0.3},
	{SETTING_QUOTA, "1500us/10s", "1500/10000000", 0.00015},
	{SETTING_QUOTA, "max", "100000/100000", 1},
	{SETTING_PRIORITY, "0", "0", 0},
	{SETTING_PRIORITY, "99", "99", 99},
	{SETTING_WEIGHT, "1", "1", 1},
	{SETTING_WEIGHT, "10000", "10000", 10000},
	{SETTING_LEND, "100us", "100", 100},
	{SETTING_LEND, "1s", "1000000", 1000000},
	{SETTING_LEND, "off", "0", 0},
	{SETTING_BORROW, "all", "0-255", -1},
	{SETTING_BORROW, "0-7,9", "0-7,9", -1},
	{SETTING_BORROW, "off", "", -1},
	{SETTING_MEMORY, "512M", "536870912", 536870912},
	{SETTING_MEMORY, "2T", "2199023255552", 2199023255552},
	{SETTING_MEMORY, "max", "0", -1},
};

static void assert_both(const struct segment_revision *revision, size_t i)
{
	char text[SETTING_TEXT];

	assert_string_equal(setting_format(revision, rows[i].setting, SETTING_FOR_PEOPLE, text), rows[i].people);
	assert_string_equal(setting_format(revision, rows[i].setting, SETTING_PLAIN, text), rows[i].plain);
	assert_true(setting_number(revision, rows[i].setting) == rows[i].number);
}

TEST(both_texts)
{
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct segment_revision revision = {.count = 0}, other = revision;

		ROW("%s %s", setting_name(rows[i].setting), rows[i].people);
		assert_int_equal(setting_parse(&revision, rows[i].setting, rows[i].people, SETTING_FOR_PEOPLE, &error),
		                 0);
		assert_both(&revision, i);
		assert_int_equal(setting_parse(&other, rows[i].setting, rows[i].plain, SETTING_PLAIN, &error), 0);
		assert_both(&other, i);
		for (enum setting setting = 0; setting < SETTING_COUNT; setting++)
			assert_int_equal(revision_gives(&revision, setting), setting == rows[i].setting);
		assert_true(revision_gives_any(&revision, SETTING_COUNT));
		assert_int_equal(revision_gives_any(&revision, SETTING_MEMORY), rows[i].setting != SETTING_MEMORY);
	}
}

/* What people write in other ways, and a former plain quota without a limit. */
TEST(further_texts)
{
	struct segment_revision revision = {.count = 0};
	char text[SETTING_TEXT];

	assert_int_equal(setting_parse(&revision, SETTING_QUOTA, "30%", SETTING_FOR_PEOPLE, NULL), 0);
	assert_string_equal(setting_format(&revision, SETTING_QUOTA, SETTING_FOR_PEOPLE, text), "30ms/100ms");
	assert_int_equal(setting_parse(&revision, SETTING_QUOTA, "4294967295/1000000", SETTING_PLAIN, NULL), 0);
	assert_string_equal(setting_format(&revision, SETTING_QUOTA, SETTING_FOR_PEOPLE, text), "max");
	assert_int_equal(setting_parse(&revision, SETTING_LEND, NULL, SETTING_FOR_PEOPLE, NULL), 0);
	assert_string_equal(setting_format(&revision, SETTING_LEND, SETTING_FOR_PEOPLE, text), "2ms");
	assert_int_equal(setting_parse(&revision, SETTING_BORROW, NULL, SETTING_FOR_PEOPLE, NULL), 0);
	assert_string_equal(setting_format(&revision, SETTING_BORROW, SETTING_FOR_PEOPLE, text), "all");
}

/* Each is refused with a reason, and nothing has changed. */
TEST(garbage)
{
	static const struct {
		enum setting setting;
		enum setting_text how;
		const char *text;
	} wrong[] = {
		{SETTING_QUOTA, SETTING_FOR_PEOPLE, "30/100"}, {SETTING_QUOTA, SETTING_FOR_PEOPLE, ""},
		{SETTING_QUOTA, SETTING_FOR_PEOPLE, "30ms/20ms"}, {SETTING_QUOTA, SETTING_FOR_PEOPLE, "1e5ms"},
		{SETTING_QUOTA, SETTING_PLAIN, ""}, {SETTING_QUOTA, SETTING_PLAIN, "999/100000"},
		{SETTING_QUOTA, SETTING_PLAIN, "1000/999"}, {SETTING_QUOTA, SETTING_PLAIN, "1000/10000001"},
		{SETTING_PRIORITY, SETTING_PLAIN, "100"}, {SETTING_PRIORITY, SETTING_FOR_PEOPLE, "-1"},
		{SETTING_PRIORITY, SETTING_PLAIN, "18446744073709551616"}, {SETTING_WEIGHT, SETTING_PLAIN, "0"},
		{SETTING_LEND, SETTING_FOR_PEOPLE, "2000"}, {SETTING_LEND, SETTING_PLAIN, "99"},
		{SETTING_LEND, SETTING_PLAIN, "1000001"}, {SETTING_BORROW, SETTING_FOR_PEOPLE, ""},
		{SETTING_BORROW, SETTING_PLAIN, "256"}, {SETTING_BORROW, SETTING_PLAIN, "none"},
		{SETTING_MEMORY, SETTING_FOR_PEOPLE, "0"}, {SETTING_MEMORY, SETTING_FOR_PEOPLE, "1073741824"},
		{SETTING_MEMORY, SETTING_FOR_PEOPLE, "16777216T"}, {SETTING_MEMORY, SETTING_FOR_PEOPLE, "16777217T"},
		{SETTING_MEMORY, SETTING_PLAIN, "2G"}, {SETTING_MEMORY, SETTING_PLAIN, "9223372036854775808"},
	};
	const struct segment_revision nothing = {.count = 0};

	for (size_t i = 0; i < COUNT_OF(wrong); i++) {
		struct segment_revision revision = nothing;

		ROW("%s '%s'", setting_name(wrong[i].setting), wrong[i].text);
		error.reason[0] = '\0';
		assert_int_equal(setting_parse(&revision, wrong[i].setting, wrong[i].text, wrong[i].how, &error), -1);
		assert_true(strlen(error.reason) > 0);
		assert_int_equal(revision_gives_any(&revision, SETTING_COUNT), 0);
	}
}

/* A hostile process can write anything into a revision: the plain text can be read again. */
TEST(hostile)
{
	for (int filler = 0; filler < 256; filler++) {
		struct segment_revision revision, again = {.count = 0};

		memset(&revision, filler, sizeof revision);
		if (filler % 2)
			revision.quota.run_us = 1;
		ROW("%d", filler);
		for (enum setting setting = 0; setting < SETTING_COUNT; setting++) {
			char text[SETTING_TEXT];

			if (setting_format(&revision, setting, SETTING_PLAIN, text))
				assert_int_equal(setting_parse(&again, setting, text, SETTING_PLAIN, &error), 0);
			if (setting_format(&revision, setting, SETTING_FOR_PEOPLE, text))
				assert_true(strlen(text) > 0);
		}
	}
}

RUN_TESTS(NULL, NULL)
