/* Text that others wrote: control characters are removed, other text is kept, and cut to a width. */
#include "../cases.h"
#include "../../tools/nvtaskset/terminal/text.c"

#include <locale.h>

#define R REPLACEMENT

static void assert_clean(const char *bytes, size_t length, const char *expected)
{
	/* Memory of exactly this size: a sanitizer sees reads and writes beyond it. */
	char *exact = malloc(length > 0 ? length : 1), *clean = malloc(TEXT_ROOM(length));

	memcpy(exact, bytes, length);
	assert_string_equal(text_clean(clean, exact, length), expected);
	free(exact);
	free(clean);
}

#define ASSERT_CLEAN(literal, expected) assert_clean(literal, sizeof literal - 1, expected)

TEST(harmless_text_is_kept)
{
	ASSERT_CLEAN("", "");
	ASSERT_CLEAN("python3\0train.py\0--name=a b", "python3 train.py --name=a b");
	ASSERT_CLEAN("\xc3\xa9\xe6\xbc\xa2\xf0\x9f\x98\x80", "\xc3\xa9\xe6\xbc\xa2\xf0\x9f\x98\x80");
	ASSERT_CLEAN("\xc2\xa0\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf", "\xc2\xa0\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf");
}

TEST(invalid_utf8_is_replaced)
{
	ASSERT_CLEAN("\x80", R);
	ASSERT_CLEAN("a\xffz", "a" R "z");
	ASSERT_CLEAN("\xc3", R);                      /* cut off */
	ASSERT_CLEAN("\xe6\xbc", R R);
	ASSERT_CLEAN("\xf0\x9f\x98", R R R);
	ASSERT_CLEAN("\xc3(", R "(");                 /* not continued */
	ASSERT_CLEAN("\xc0\x80\xc1\xbf", R R R R);    /* longer than need be */
	ASSERT_CLEAN("\xe0\x9f\xbf", R R R);
	ASSERT_CLEAN("\xf0\x8f\xbf\xbf", R R R R);
	ASSERT_CLEAN("\xed\xa0\x80", R R R);          /* a surrogate */
	ASSERT_CLEAN("\xf4\x90\x80\x80", R R R R);    /* beyond Unicode */
	ASSERT_CLEAN("\xf8\x88\x80\x80\x80", R R R R R);
}

TEST(harmful_characters_are_replaced)
{
	ASSERT_CLEAN("a\033[2J\r\n\t\x7f", "a" R "[2J" R R R R);
	ASSERT_CLEAN("\xc2\x9b" "2J", R "2J");         /* CSI as one character */
	/* Misleading text is tested here: NOLINTBEGIN(misc-misleading-bidirectional) */
	ASSERT_CLEAN("\xe2\x80\xae" "gpj", R "gpj"); /* right to left */
	ASSERT_CLEAN("\xe2\x81\xa6\xe2\x80\x8b\xef\xbb\xbf\xe2\x80\xa8", R R R R);
	/* NOLINTEND(misc-misleading-bidirectional) */
}

TEST(a_copy_is_cut_between_characters)
{
	char copy[8];

	text_copy(copy, sizeof copy, "a\xe6\xbc\xa2" "b\xe6\xbc\xa2");
	assert_string_equal(copy, "a\xe6\xbc\xa2" "b");
	text_copy(copy, sizeof copy, "\033\xe6\xbc");
	assert_string_equal(copy, R R);
	text_copy(copy, sizeof copy, "1234567");
	assert_string_equal(copy, "1234567");
	text_copy(copy, 1, "12");
	assert_string_equal(copy, "");
}

static void assert_printed(const char *text, size_t columns, bool utf8, const char *expected, size_t width)
{
	char *printed;
	size_t length;
	FILE *file = open_memstream(&printed, &length);
	size_t taken = text_print(file, text, columns, utf8);

	fclose(file);
	assert_string_equal(printed, expected);
	assert_int_equal(taken, width);
	free(printed);
}

TEST(ascii)
{
	assert_printed("command", TEXT_WHOLE, false, "command", 7);
	assert_printed("command", 4, false, "comm", 4);
	assert_printed("command", 0, false, "", 0);
	assert_printed("\xc3\xa9t\xc3\xa9 \xe6\xbc\xa2", TEXT_WHOLE, false, "?t? ?", 5);
	assert_int_equal(text_width("\xc3\xa9t\xc3\xa9 \xe6\xbc\xa2", false), 5);
}

TEST(utf8)
{
	if (!setlocale(LC_CTYPE, "C.UTF-8"))
		skip_because("needs the locale C.UTF-8");
	assert_int_equal(text_width("\xc3\xa9t\xc3\xa9 \xe6\xbc\xa2", true), 6);
	assert_printed("\xc3\xa9t\xc3\xa9", 2, true, "\xc3\xa9t", 2);
	/* A character of two columns does not fit into one column, and is left out. */
	assert_printed("a\xe6\xbc\xa2z", 2, true, "a", 1);
	assert_printed("a\xe6\xbc\xa2z", 3, true, "a\xe6\xbc\xa2", 3);
	/* A combining accent belongs to the character before it. */
	assert_printed("e\xcc\x81z", 1, true, "e\xcc\x81", 1);
}

TEST(colours_take_no_room)
{
	assert_int_equal(text_width("\033[1;37;41m # \033[m ok", false), 6);
	assert_printed("\033[7m A \033[m train", 4, false, "\033[7m A \033[m ", 4);
	/* After a cut, colours are reset. */
	assert_printed("\033[7mlong\033[m", 2, false, "\033[7mlo\033[m", 2);
	assert_printed("\033[7", 2, false, "\033[7", 0);
}

RUN_TESTS(NULL, NULL)
