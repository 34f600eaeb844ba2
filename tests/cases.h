/*
 * For test programs: what nearly all of them include, and their list of cases.
 *
 *   TEST(name) { … }             a case, which is on the list by being written
 *   FIXTURE(name) { … }          what is done before or after cases
 *   TEST_WITH(begin, end, name)  a case with a fixture of its own
 *   TEST_BY(how, name) { … }     a case that is given to the function `how`, which runs it: in a child, for example
 *   ROW("…")                     in a loop over a table: a failure from here on names this row
 *   RUN_TESTS(begin, end)        at the end of the file: main; a case without a fixture of its own has this one, which may be NULL
 *   RUN_TESTS_IN(begin_all, end_all, begin, end)  and this is done before and after all of them
 */
#ifndef NVTASKSET_TESTS_CASES_H
#define NVTASKSET_TESTS_CASES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* 1 in a build with AddressSanitizer or ThreadSanitizer, by gcc or clang. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

struct test_case {
	const char *name;
	void (*run)(void);
	CMFixtureFunction begin, end;
};

static struct test_case listed_cases[64];
static size_t listed_count;
static char case_row[256];

#define TEST_WITH(begin, end, name)                                                                \
	static void test_##name(void);                                                             \
	static void __attribute__((constructor)) add_case_##name(void)                                 \
	{                                                                                          \
		case_add("test_" #name, test_##name, begin, end);                                  \
	}                                                                                          \
	static void test_##name(void)

#define TEST(name) TEST_WITH(NULL, NULL, name)

#define TEST_WITH_BY(begin, end, how, name)                                                        \
	static void body_##name(void);                                                             \
	TEST_WITH(begin, end, name)                                                                \
	{                                                                                          \
		how(body_##name);                                                                  \
	}                                                                                          \
	static void body_##name(void)

#define TEST_BY(how, name) TEST_WITH_BY(NULL, NULL, how, name)

#define FIXTURE(name)                                                                              \
	static void do_##name(void);                                                               \
	static int name(void **state)                                                              \
	{                                                                                          \
		do_##name();                                                                       \
		return 0;                                                                          \
	}                                                                                          \
	static void do_##name(void)

/* Numbers in pairs that must be equal: a value and the wanted value, again and again. */
#define assert_each(...)                                                                           \
	assert_pairs(#__VA_ARGS__, (const uint64_t[]){__VA_ARGS__}, COUNT_OF(((const uint64_t[]){__VA_ARGS__})), __FILE__, __LINE__)

/* A call that must succeed: it returns 0, and leaves its reason in `error` if not. */
#define assert_done(call)                                                                          \
	do {                                                                                       \
		if ((call) != 0)                                                                   \
			fail_msg("%s: %s", #call, error.reason);                                   \
	} while (0)

/* Calls that fail and leave this in `error`, whatever was there before: a reason, a part of it, or a code. */
#define assert_fails_with_error(call) (error = (__typeof__(error)){.reason = "none"}, assert_int_equal(call, -1))
#define assert_error(call, text) (assert_fails_with_error(call), assert_string_equal(error.reason, text))
#define assert_error_has(call, part) (assert_fails_with_error(call), assert_non_null(strstr(error.reason, part)))
#define assert_error_code(call, name) (assert_fails_with_error(call), assert_int_equal(error.code, NVTASKSET_ERROR_##name))

/* Begins a function that the linker puts in the place of `name` (link: -Wl,--wrap=NAME). */
#define WRAP(type, name, ...)                                                                      \
	type __wrap_##name(__VA_ARGS__);                                                           \
	type __wrap_##name(__VA_ARGS__)

#define ROW(...) snprintf(case_row, sizeof case_row, __VA_ARGS__)

static inline void case_add(const char *name, void (*run)(void), CMFixtureFunction begin, CMFixtureFunction end)
{
	if (listed_count == COUNT_OF(listed_cases))
		abort();
	listed_cases[listed_count++] = (struct test_case){name, run, begin, end};
}

static inline void assert_pairs(const char *text, const uint64_t *values, size_t count, const char *file, int line)
{
	for (size_t i = 0; i + 1 < count; i += 2) {
		if (values[i] == values[i + 1])
			continue;
		print_error("pair %zu of: %s\n%#llx != %#llx\n", i / 2 + 1, text, (unsigned long long)values[i],
		            (unsigned long long)values[i + 1]);
		_fail(file, line);
	}
}

/*
 * Ends the running test as skipped, and prints why; tests/run reads that line, and its head explains "needs …". Not for
 * a test's setup, where cmocka counts it as a failure.
 */
static inline _Noreturn void skip_because(const char *reason)
{
	print_message("# skipped: %s\n", reason);
	skip();
	abort(); /* skip() does not return, but does not say so */
}

/* Waits for a child that is about to exit with 0. */
static inline void assert_ends_well(pid_t child)
{
	int status = 1;

	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static inline pthread_t thread_start(void *(*body)(void *), void *data)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, body, data), 0);
	return thread;
}

/* As many threads at the same time, with `data`, `data` + `step`, …; each must end with NULL. */
static inline void threads_run(unsigned int count, void *(*body)(void *), void *data, size_t step)
{
	pthread_t threads[128];
	void *end;

	assert_in_range(count, 1, COUNT_OF(threads));
	for (unsigned int i = 0; i < count; i++)
		threads[i] = thread_start(body, (void *)((uintptr_t)data + i * step));
	for (unsigned int i = 0; i < count; i++) {
		assert_int_equal(pthread_join(threads[i], &end), 0);
		assert_null(end);
	}
}

static inline void end_child(pid_t child)
{
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
}

/* Sets a limit of this process, and returns the one before. */
static inline rlim_t limit_to(enum __rlimit_resource resource, rlim_t value)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(resource, &limit), 0);
	rlim_t before = limit.rlim_cur;

	limit.rlim_cur = value;
	assert_int_equal(setrlimit(resource, &limit), 0);
	return before;
}

/* A statement under such a limit. */
#define with_limit(resource, value, ...)                                                           \
	do {                                                                                       \
		rlim_t limit_before = limit_to(resource, value);                                   \
		__VA_ARGS__;                                                                       \
		limit_to(resource, limit_before);                                                  \
	} while (0)

/* As printf writes it; it holds until eight more were written. */
static inline const char *__attribute__((format(printf, 1, 2))) text_of(const char *format, ...)
{
	static char texts[9][PATH_MAX];
	static unsigned int next;
	char *text = texts[next++ % COUNT_OF(texts)];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof texts[0], format, arguments);
	va_end(arguments);
	return text;
}

/* Of a row of pseudo-random numbers, which a test may begin anew: the next one, below `end`. */
static uint64_t random_state = 1;

static inline unsigned int some_below(uint64_t end)
{
	random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (unsigned int)((random_state >> 33) % end);
}

/* A path in the build directory. */
static inline const char *in_build(const char *name)
{
	const char *build = getenv("BUILD");

	return text_of("%s/%s", build ? build : "build", name);
}

static inline void case_run(void **state)
{
	const struct test_case *self = *state;

	*case_row = '\0';
	self->run();
	*case_row = '\0';
}

/* For a case that wants nothing of RUN_TESTS's fixture. */
static inline int no_fixture(void **state)
{
	return 0;
}

/* After a case that has failed, too. */
static inline int case_end(void **state)
{
	const struct test_case *self = *state;

	if (*case_row)
		print_message("# %s: in the row \"%s\"\n", self->name, case_row);
	*case_row = '\0';
	return self->end ? self->end(state) : 0;
}

/* Runs all cases, or those whose names match TEST_FILTER: what main returns. */
static inline int run_tests_in(CMFixtureFunction begin_all, CMFixtureFunction end_all, CMFixtureFunction begin,
                               CMFixtureFunction end)
{
	struct CMUnitTest tests[COUNT_OF(listed_cases)];
	const char *filter = getenv("TEST_FILTER");

	if (filter && *filter)
		cmocka_set_test_filter(filter);
	for (size_t i = 0; i < listed_count; i++) {
		struct test_case *self = &listed_cases[i];

		if (!self->begin && !self->end) {
			self->begin = begin;
			self->end = end;
		}
		tests[i] = (struct CMUnitTest){self->name, case_run, self->begin, case_end, self};
	}
	return _cmocka_run_group_tests("tests", tests, listed_count, begin_all, end_all);
}

#define RUN_TESTS_IN(begin_all, end_all, begin, end)                                               \
	int main(void)                                                                             \
	{                                                                                          \
		return run_tests_in(begin_all, end_all, begin, end);                               \
	}
#define RUN_TESTS(begin, end) RUN_TESTS_IN(NULL, NULL, begin, end)

#endif
