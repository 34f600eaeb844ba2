/* Sets and their notations. tests/fuzz/tpcset.c reads no byte too many, and writes what it reads again. */
#include "../cases.h"
#include "gpu/tpcset.h"

#define LIMIT 66

static int parse(struct tpcset *set, const char *text, bool is_mask, struct error *error)
{
	return is_mask ? tpcset_parse_mask(set, text, LIMIT, "TPC", error) : tpcset_parse_list(set, text, LIMIT, "TPC", error);
}

static void check_good(const char *text, bool is_mask, const char *list)
{
	struct tpcset set;
	struct error error = {.reason = ""};
	char formatted[TPCSET_TEXT];

	ROW("%s", text);
	assert_done(parse(&set, text, is_mask, &error));
	assert_string_equal(tpcset_format_list(&set, formatted), list);
}

TEST(lists)
{
	static const char *const lists[][2] = {
		{"0", "0"}, {"0-9,12,20-30:2", "0-9,12,20,22,24,26,28,30"}, {"65", "65"}, {"0-65", "0-65"}, {"5,4,3", "3-5"},
		{"1-3,2-6", "1-6"}, {"7-7", "7"}, {"0-10:100", "0"}, {"007", "7"}, {"0-65:64", "0,64"},
	};

	for (size_t i = 0; i < COUNT_OF(lists); i++)
		check_good(lists[i][0], false, lists[i][1]);
}

TEST(masks)
{
	static const char *const masks[][2] = {
		{"ff", "0-7"}, {"0xFF", "0-7"}, {"0Xf0", "4-7"}, {"0", ""}, {"3ffffffffffffffff", "0-65"},
		{"3,ffffffff,ffffffff", "0-65"}, {"2,00000000,00000000", "65"},
		{"0000000000000000000000000000000000000000000000000000000000000000000000001", "0"},
	};

	for (size_t i = 0; i < COUNT_OF(masks); i++)
		check_good(masks[i][0], true, masks[i][1]);
}

/* If anything is wrong, nothing is written. */
static void check_bad(const char *text, bool is_mask)
{
	struct tpcset set = {{1, 2, 3, 4}}, before = set;
	struct error error = {.reason = ""};

	assert_int_equal(parse(&set, text, is_mask, &error), -1);
	assert_true(strlen(error.reason) > 0);
	assert_null(strchr(error.reason, '\n'));
	assert_true(tpcset_equal(&set, &before));
}

TEST(bad_lists)
{
	static const char *const lists[] = {"", ",", "1,", ",1", "1,,2", "-", "-1", "1-", "3-1", "1-2-3", "1:2", "1-4:0", "1-4:",
	                                    "x", "1x", " 1", "1 ", "+1", "0x1", "66", "0-66", "4294967297", "1;2", "1-4:2:2"};

	for (size_t i = 0; i < COUNT_OF(lists); i++)
		check_bad(lists[i], false);
}

TEST(bad_masks)
{
	static const char *const masks[] = {"", "0x", "0X", "x", ",", ",1", "1,", "1,2", "g", "-1", " 1", "1 ", "40000000000000000",
	                                    "0x0x1", "1,000000000", "1,,00000000"};

	for (size_t i = 0; i < COUNT_OF(masks); i++)
		check_bad(masks[i], true);
}

RUN_TESTS(NULL, NULL)
