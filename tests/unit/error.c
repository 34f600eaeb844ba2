/* The description of an error: the reason as one line, and a code. */
#include "base/error.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <errno.h>
#include <string.h>

static void test_reason_and_code(void **state)
{
	struct error error = {.code = NVTASKSET_ERROR_BUSY, .system_error = EIO};

	(void)state;
	errno = ENOENT;
	assert_int_equal(error_set(&error, "a\nb\x1b[2J%d", 7), -1);
	assert_string_equal(error.reason, "a?b?[2J7");
	assert_int_equal(error.code, NVTASKSET_ERROR_OTHER);
	assert_int_equal(error.system_error, 0);
	assert_int_equal(error_set_code(&error, NVTASKSET_ERROR_DAMAGED, "%s", "x"), -1);
	assert_string_equal(error.reason, "x");
	assert_int_equal(error.code, NVTASKSET_ERROR_DAMAGED);
	assert_int_equal(error_set_code(NULL, NVTASKSET_ERROR_DAMAGED, "x"), -1);
	assert_int_equal(error_set_errno(NULL, "x"), -1);
	assert_int_equal(errno, ENOENT);
}

static void test_code_of_errno(void **state)
{
	static const struct {
		int number;
		enum nvtaskset_error_code code;
	} rows[] = {
		{EACCES, NVTASKSET_ERROR_NOT_PERMITTED}, {EPERM, NVTASKSET_ERROR_NOT_PERMITTED},
		{ENOMEM, NVTASKSET_ERROR_NO_MEMORY},     {EMFILE, NVTASKSET_ERROR_SYSTEM},
		{ENOENT, NVTASKSET_ERROR_SYSTEM},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct error error;

		errno = rows[i].number;
		assert_int_equal(error_set_errno(&error, "x"), -1);
		assert_memory_equal(error.reason, "x: ", 3);
		assert_string_equal(error.reason + 3, strerror(rows[i].number));
		assert_int_equal(error.code, rows[i].code);
		assert_int_equal(error.system_error, rows[i].number);
		assert_int_equal(errno, rows[i].number);
	}
}

static void test_reworded_reason_keeps_code(void **state)
{
	struct error error, passed;

	(void)state;
	errno = ENOMEM;
	error_set_errno(&error, "x");
	error_reword(&error, "pid %d: %s", 7, error.reason);
	assert_int_equal(errno, ENOMEM);
	assert_int_equal(error_pass(&passed, &error), -1);
	assert_int_equal(error_pass(NULL, &error), -1);
	assert_memory_equal(passed.reason, "pid 7: x: ", 10);
	assert_int_equal(passed.code, NVTASKSET_ERROR_NO_MEMORY);
	assert_int_equal(passed.system_error, ENOMEM);
}

/* The longest reason ends before the code. */
static void test_long_reasons_are_cut(void **state)
{
	struct error error;
	char text[2 * ERROR_MAX];

	(void)state;
	memset(text, 'a', sizeof text);
	text[sizeof text - 1] = '\0';
	error_set_code(&error, NVTASKSET_ERROR_ENDED, "%s", text);
	assert_int_equal(strlen(error.reason), ERROR_MAX - 1);
	errno = EIO;
	error_set_errno(&error, "%s", text);
	assert_int_equal(strlen(error.reason), ERROR_MAX - 1);
	error_reword(&error, "x%s", error.reason);
	assert_int_equal(strlen(error.reason), ERROR_MAX - 1);
	assert_int_equal(error.code, NVTASKSET_ERROR_SYSTEM);
	assert_int_equal(error.system_error, EIO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reason_and_code),
		cmocka_unit_test(test_code_of_errno),
		cmocka_unit_test(test_reworded_reason_keeps_code),
		cmocka_unit_test(test_long_reasons_are_cut),
	};

	return cmocka_run_group_tests_name("error", tests, NULL, NULL);
}
