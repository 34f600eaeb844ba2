/* The description of an error: the reason as one line, and a code. */
#include "../cases.h"
#include "base/error.h"

TEST(code_of_errno)
{
	static const struct {
		int number;
		enum nvtaskset_error_code code;
	} rows[] = {
		{EACCES, NVTASKSET_ERROR_NOT_PERMITTED}, {EPERM, NVTASKSET_ERROR_NOT_PERMITTED},
		{ENOMEM, NVTASKSET_ERROR_NO_MEMORY}, {EMFILE, NVTASKSET_ERROR_SYSTEM}, {ENOENT, NVTASKSET_ERROR_SYSTEM},
	};

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct error error;

		errno = rows[i].number;
		assert_int_equal(error_set_errno(&error, "x"), -1);
		assert_memory_equal(error.reason, "x: ", 3);
		assert_string_equal(error.reason + 3, strerror(rows[i].number));
		assert_each(error.code, rows[i].code, error.system_error, rows[i].number, errno, rows[i].number);
	}
}

/* The longest reason ends before the code. */
TEST(long_reasons_are_cut)
{
	struct error error;
	char text[2 * ERROR_MAX];

	memset(text, 'a', sizeof text);
	text[sizeof text - 1] = '\0';
	error_set_code(&error, NVTASKSET_ERROR_ENDED, "%s", text);
	assert_int_equal(strlen(error.reason), ERROR_MAX - 1);
	errno = EIO;
	error_set_errno(&error, "%s", text);
	assert_int_equal(strlen(error.reason), ERROR_MAX - 1);
	error_reword(&error, "x%s", error.reason);
	assert_each(strlen(error.reason), ERROR_MAX - 1, error.code, NVTASKSET_ERROR_SYSTEM, error.system_error, EIO);
}

/* Of ASCII, of C1, and of the direction of text; letters with the same first bytes stay. */
TEST(control_characters_are_replaced)
{
	static const char *const rows[][2] = {
		{"a\x1b[2Jb\nc\x7f", "a?[2Jb?c?"}, {"\u00e9\xc2\x9b", "\u00e9??"}, {"\u202eb\u202c", "???b???"},
		{"\u061cb\u0622", "??b\u0622"}, {"\u2066\u2069\u2071", "??????\u2071"}, {"\u2010\u200f", "\u2010???"},
		{"\xe2\x80", "\xe2\x80"}, {"\xc2", "\xc2"},
	};
	struct error error;

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		error_set(&error, "%s", rows[i][0]);
		assert_string_equal(error.reason, rows[i][1]);
	}
}

RUN_TESTS(NULL, NULL)
