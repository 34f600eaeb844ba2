/*
 * How long launches will be, from what launches before them took. Section numbers are of TimeGraph (Kato et al., USENIX
 * ATC 2011), whose words the rules are.
 */
#include "shim/prediction.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define US UINT64_C(1000)
#define MS (1000 * US)

static struct prediction_history history;

static int begin(void **state)
{
	(void)state;
	memset(&history, 0, sizeof history);
	return 0;
}

static struct prediction_key key_of(uintptr_t function, uint32_t grid, uint32_t tpcs)
{
	return (struct prediction_key){.what = (const void *)function, .grid = {grid, 1, 1}, .tpcs = tpcs};
}

static struct prediction ask(uintptr_t function)
{
	struct prediction_key key = key_of(function, 64, 8);

	return prediction_ask(&history, &key);
}

/* It is launched, and takes so long. */
static void run(uintptr_t function, uint64_t came)
{
	struct prediction_key key = key_of(function, 64, 8);

	prediction_learn(&history, &key, prediction_ask(&history, &key), came);
}

static void assert_known(uintptr_t function, uint64_t ns)
{
	assert_true(ask(function).is_known);
	assert_int_equal(ask(function).ns, ns);
}

static void assert_unknown(uintptr_t function, uint64_t ns)
{
	assert_false(ask(function).is_known);
	assert_int_equal(ask(function).ns, ns);
}

/* --- the paper's rules, 5.3 --------------------------------------------------------------------------------------- */

/*
 * "If there exists a record [...] it uses the average [...]. Otherwise [...] the worst-case GPU execution cost among all
 * the records."
 *
 *   ended        records                 a function that is not there
 *   -            -                       0: nothing is known
 *   A 100 us     A 100                   100
 *   B 40 ms      A 100, B 40000          40000
 *   A 300        A 200, B 40000          40000
 */
static void test_worst_for_unknown(void **state)
{
	(void)state;
	assert_unknown(9, 0);
	run(1, 100 * US);
	assert_known(1, 100 * US);
	assert_unknown(9, 100 * US);
	run(2, 40 * MS);
	assert_unknown(9, 40 * MS);
	run(1, 300 * US);
	assert_known(1, 200 * US);
	assert_known(2, 40 * MS);
	assert_unknown(9, 40 * MS);
}

/* The worst one becomes shorter: 40 ms, then the means of 40 and 0, of 40, 0 and 0, … until it is below the other's 12
 * ms. */
static void test_worst_becomes_better(void **state)
{
	(void)state;
	run(1, 12 * MS);
	run(2, 40 * MS);
	run(2, 0);
	assert_unknown(9, 20 * MS);
	run(2, 0);
	assert_int_equal(ask(9).ns / US, 13333);
	run(2, 0);
	assert_in_range(ask(2).ns, 10 * MS - 10, 10 * MS + 10);
	assert_unknown(9, 12 * MS);
}

/*
 * "it updates the average": that of all for the first eight, 100, 150, 200, … 450 us: 275 us. From then on each counts
 * for an eighth: 275 + (1075 - 275) / 8 = 375. What is regular again is predicted well after some more: of a distance,
 * each leaves 7/8, and 40 of them less than 1/200.
 */
static void test_mean(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 8; i++)
		run(1, (100 + 50 * i) * US);
	assert_in_range(ask(1).ns, 275 * US - 10, 275 * US + 10);
	run(1, 1075 * US);
	assert_in_range(ask(1).ns, 375 * US - 20, 375 * US + 20);
	for (int i = 0; i < 40; i++)
		run(1, 1375 * US);
	assert_in_range(ask(1).ns, 1370 * US, 1375 * US);
}

/* Each of them makes another launch: the function, each dimension of the grid, the partition; a graph has no grid. */
static void test_keys(void **state)
{
	const struct prediction_key keys[] = {
		{.what = (void *)1, .grid = {64, 1, 1}, .tpcs = 8},  {.what = (void *)2, .grid = {64, 1, 1}, .tpcs = 8},
		{.what = (void *)1, .grid = {128, 1, 1}, .tpcs = 8}, {.what = (void *)1, .grid = {1, 64, 1}, .tpcs = 8},
		{.what = (void *)1, .grid = {1, 1, 64}, .tpcs = 8},  {.what = (void *)1, .grid = {64, 1, 1}, .tpcs = 66},
		{.what = (void *)1, .grid = {1, 1, 1}, .tpcs = 8},   {.what = (void *)1, .tpcs = 8},
	};
	const size_t count = sizeof keys / sizeof keys[0];

	(void)state;
	for (size_t i = 0; i < count; i++) {
		struct prediction before = prediction_ask(&history, &keys[i]);

		assert_false(before.is_known);
		prediction_learn(&history, &keys[i], before, (i + 1) * MS);
	}
	for (size_t i = 0; i < count; i++)
		assert_int_equal(prediction_ask(&history, &keys[i]).ns, (i + 1) * MS);
}

/* "If the total number of the records exceeds the table size, the least-recently-used (LRU) record is removed." Here:
 * where a set is full. What is used all the time stays, whatever else comes; and what has come last is there. */
static void test_least_recently_used(void **state)
{
	(void)state;
	for (uintptr_t other = 100; other < 100 + 8 * PREDICTION_RECORDS; other++) {
		run(1, 7 * MS);
		run(other, 3 * MS);
		assert_known(1, 7 * MS);
		assert_known(other, 3 * MS);
	}
	assert_unknown(100, 7 * MS);
}

/* The worst one is removed: the next one is the worst. */
static void test_worst_is_removed(void **state)
{
	(void)state;
	run(1, 40 * MS);
	for (uintptr_t other = 100; other < 100 + 8 * PREDICTION_RECORDS; other++)
		run(other, 3 * MS);
	assert_unknown(1, 3 * MS);
}

/* --- handles that are used again ---------------------------------------------------------------------------------- */

static void test_forget(void **state)
{
	struct prediction_key other_grid = key_of(1, 128, 8);

	(void)state;
	run(1, 40 * MS);
	prediction_learn(&history, &other_grid, prediction_ask(&history, &other_grid), 50 * MS);
	run(2, 3 * MS);
	prediction_forget(&history, (void *)1);
	assert_false(ask(1).is_known);
	assert_false(prediction_ask(&history, &other_grid).is_known);
	assert_known(2, 3 * MS);
	run(2, 3 * MS);
	assert_unknown(1, 3 * MS);
	run(1, 5 * MS);
	assert_known(1, 5 * MS);
	prediction_forget(&history, NULL);
	assert_false(ask(1).is_known);
	assert_false(ask(2).is_known);
}

/* --- how good it was ---------------------------------------------------------------------------------------------- */

static struct prediction_quality quality_of(uintptr_t function)
{
	struct prediction_quality quality = {.known = 0};
	struct prediction_known known;

	for (size_t i = 0; i < PREDICTION_RECORDS; i++) {
		if (prediction_read(&history, i, &known) && known.key.what == (const void *)function)
			quality = known.quality;
	}
	return quality;
}

/*
 *   launch   predicted   came   error
 *   1        unknown     10 ms
 *   1        10 ms       12     2
 *   1        11          8      3
 *   2        unknown     5
 *   2        5           5      0
 */
static void test_quality(void **state)
{
	(void)state;
	run(1, 10 * MS);
	run(1, 12 * MS);
	run(1, 8 * MS);
	run(2, 5 * MS);
	run(2, 5 * MS);
	assert_int_equal(history.quality.known, 3);
	assert_int_equal(history.quality.unknown, 2);
	assert_int_equal(history.quality.predicted_ns, 26 * MS);
	assert_int_equal(history.quality.came_ns, 25 * MS);
	assert_int_equal(history.quality.error_ns, 5 * MS);
	assert_int_equal(quality_of(1).known, 2);
	assert_int_equal(quality_of(1).unknown, 1);
	assert_int_equal(quality_of(1).error_ns, 5 * MS);
	assert_int_equal(quality_of(2).error_ns, 0);
	assert_int_equal(quality_of(2).came_ns, 5 * MS);
}

/* A record that is another's has nothing of the one before; the sum of all has. */
static void test_quality_of_removed(void **state)
{
	(void)state;
	for (uintptr_t other = 1; other <= 8 * PREDICTION_RECORDS; other++)
		run(other, other * US);
	assert_int_equal(history.quality.unknown, 8 * PREDICTION_RECORDS);
	assert_int_equal(quality_of(8 * PREDICTION_RECORDS).unknown, 1);
	assert_int_equal(quality_of(8 * PREDICTION_RECORDS).known, 0);
}

/* --- random loads ------------------------------------------------------------------------------------------------- */

/* Functions of a regular length, and up to 10 % more or less: the error is less than 15 %, which the paper reaches for
 * regular work (figure 14 a). Every answer is within what came, and nothing unknown is predicted to be shorter than
 * anything known. */
static void test_regular_work(void **state)
{
	(void)state;
	srandom(23);
	for (int i = 0; i < 20000; i++) {
		uintptr_t function = 1 + (uintptr_t)random() % 200;
		uint64_t usual = function * function * US, came = usual * (uint64_t)(900 + random() % 201) / 1000;
		uint64_t least = usual * 9 / 10 - PREDICTION_UNIT_NS, most = usual * 11 / 10 + PREDICTION_UNIT_NS;

		if (ask(function).is_known)
			assert_in_range(ask(function).ns, least, most);
		run(function, came);
		assert_true(ask(1000).ns >= ask(function).ns);
	}
	assert_true(history.quality.error_ns < history.quality.came_ns * 15 / 100);
	assert_int_equal(history.quality.known + history.quality.unknown, 20000);
}

/* Nonsense is cut off, and does not stay for ever. */
static void test_nonsense(void **state)
{
	const uint64_t times[] = {UINT64_MAX, INT64_MAX, 0, UINT64_C(1) << 63, PREDICTION_MOST_NS + 1};

	(void)state;
	for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
		run(1, times[i]);
		assert_true(ask(1).is_known);
		assert_true(ask(1).ns <= PREDICTION_MOST_NS);
	}
	for (int i = 0; i < 200; i++)
		run(1, 1 * MS);
	assert_in_range(ask(1).ns, 1 * MS, 1 * MS + 100);
}

/* --- threads ------------------------------------------------------------------------------------------------------ */

static atomic_bool is_over;

/* Function n takes n ms, always. Records come and go, since there are too many functions. */
#define MANY (2 * PREDICTION_RECORDS)

static void *ask_always(void *unused)
{
	uintptr_t wrong = 0;

	(void)unused;
	for (uintptr_t i = 0; !atomic_load(&is_over); i++) {
		struct prediction prediction = ask(1 + i % MANY);

		wrong += prediction.is_known && prediction.ns != (1 + i % MANY) * MS;
	}
	return (void *)wrong;
}

static void *forget_always(void *unused)
{
	for (uintptr_t i = 0; !atomic_load(&is_over); i++)
		prediction_forget(&history, (const void *)(1 + i % 100));
	return unused;
}

static void test_threads(void **state)
{
	pthread_t asking, forgetting;
	void *wrong;

	(void)state;
	atomic_store(&is_over, false);
	assert_int_equal(pthread_create(&asking, NULL, ask_always, NULL), 0);
	assert_int_equal(pthread_create(&forgetting, NULL, forget_always, NULL), 0);
	for (uintptr_t i = 0; i < 100000; i++)
		run(1 + i * 7 % MANY, (1 + i * 7 % MANY) * MS);
	atomic_store(&is_over, true);
	pthread_join(asking, &wrong);
	pthread_join(forgetting, NULL);
	assert_null(wrong);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_worst_for_unknown, begin),
		cmocka_unit_test_setup(test_worst_becomes_better, begin),
		cmocka_unit_test_setup(test_mean, begin),
		cmocka_unit_test_setup(test_keys, begin),
		cmocka_unit_test_setup(test_least_recently_used, begin),
		cmocka_unit_test_setup(test_worst_is_removed, begin),
		cmocka_unit_test_setup(test_forget, begin),
		cmocka_unit_test_setup(test_quality, begin),
		cmocka_unit_test_setup(test_quality_of_removed, begin),
		cmocka_unit_test_setup(test_regular_work, begin),
		cmocka_unit_test_setup(test_nonsense, begin),
		cmocka_unit_test_setup(test_threads, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
