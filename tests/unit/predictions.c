/* What a process says in its segment of its predictions: how it comes there, who may read it, and what others show of it. */
#include "own_segment.h"

#include "shim/prediction_tell.h"
#include "state/function_sums.h"
#include "state/layout.h"
#include "state/look.h"
#include "state/stamps.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdlib.h>

#define US UINT64_C(1000)
#define MS (1000 * US)
#define ANYWHERE (UINT64_C(1) << 57)

static struct segment segment; /* the owner's */
static struct prediction_history history;
static struct predictions said; /* as others read it */

static int set_up(void **state)
{
	(void)state;
	segment = make_segment();
	memset(&history, 0, sizeof history);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	segment_close(&segment);
	return 0;
}

static void run(uintptr_t what, uint32_t grid, uint32_t tpcs, uint64_t came)
{
	const struct prediction_key key = {.what = (const void *)what, .grid = {grid, 1, 1}, .tpcs = tpcs};

	prediction_learn(&history, &key, prediction_ask(&history, &key), came);
}

static void assert_quality(const struct prediction_quality *quality, uint64_t known, uint64_t unknown, uint64_t predicted,
                           uint64_t came, uint64_t error)
{
	assert_int_equal(quality->known, known);
	assert_int_equal(quality->unknown, unknown);
	assert_int_equal(quality->predicted_ns, predicted);
	assert_int_equal(quality->came_ns, came);
	assert_int_equal(quality->error_ns, error);
}

static void tell(void)
{
	prediction_tell(&segment, &history);
	assert_true(predictions_read(&segment, &said));
}

/* --- telling -------------------------------------------------------------------------------------------------------- */

static void test_nothing_was_said_yet(void **state)
{
	(void)state;
	assert_false(predictions_read(&segment, &said));
	tell();
	assert_int_equal(said.count, 0);
	assert_quality(&said.all, 0, 0, 0, 0, 0);
}

/* A function is one, with all its grids and partitions; who was launched most often comes first. */
static void test_functions_and_graphs(void **state)
{
	(void)state;
	run(0x10, 0, 8, 160 * US); /* a graph */
	run(0x20, 64, 8, 16 * US);
	run(0x20, 64, 8, 32 * US); /* 16 were predicted */
	run(0x20, 128, 8, 48 * US);
	run(0x20, 64, 9, 80 * US);
	run(0x10, 0, 8, 80 * US); /* 160 were predicted */
	tell();
	assert_int_equal(said.count, 2);
	assert_int_equal(said.list[0].what, 0x20);
	assert_false(said.list[0].is_graph);
	assert_quality(&said.list[0].quality, 1, 3, 16 * US, 32 * US, 16 * US);
	assert_int_equal(said.list[1].what, 0x10);
	assert_true(said.list[1].is_graph);
	assert_quality(&said.list[1].quality, 1, 1, 160 * US, 80 * US, 80 * US);
	assert_quality(&said.all, 2, 4, 176 * US, 112 * US, 96 * US);
}

/* By the name that stamps have for it. */
static void test_a_function_with_another_handle(void **state)
{
	const struct prediction_key key = {.what = (const void *)0x20, .grid = {64, 1, 1}, .tpcs = 8};

	(void)state;
	run(0x20, 64, 8, 16 * US);
	run(0x30, 64, 8, 16 * US);
	run(0x30, 64, 8, 16 * US);
	prediction_call(&history, &key, 0x30);
	prediction_call(&history, &(const struct prediction_key){.what = (const void *)0x40, .grid = {1, 1, 1}}, 0x50);
	tell();
	assert_int_equal(said.count, 1);
	assert_int_equal(said.list[0].what, 0x30);
	assert_quality(&said.list[0].quality, 1, 2, 16 * US, 16 * US, 0);
}

/* Of more than there is room for, the sum still is that of all. */
static void test_more_than_there_is_room_for(void **state)
{
	(void)state;
	for (uintptr_t i = 1; i <= PREDICTIONS_MAX + 8; i++) {
		run(0x1000 * i, 64, 8, 16 * US);
		if (i > 8)
			run(0x1000 * i, 64, 8, 16 * US);
	}
	tell();
	assert_int_equal(said.count, PREDICTIONS_MAX);
	for (unsigned int i = 0; i < said.count; i++)
		assert_int_equal(said.list[i].what, 0x1000 * (9 + i));
	const uint64_t known_ns = PREDICTIONS_MAX * 16 * US;

	assert_quality(&said.all, PREDICTIONS_MAX, PREDICTIONS_MAX + 8, known_ns, known_ns, 0);
}

static void test_what_is_forgotten_is_not_said_any_more(void **state)
{
	(void)state;
	run(0x10, 64, 8, MS);
	run(0x20, 64, 8, MS);
	prediction_forget(&history, (const void *)0x10);
	tell();
	assert_int_equal(said.count, 1);
	assert_int_equal(said.list[0].what, 0x20);
	assert_int_equal(said.all.unknown, 2);
}

/* --- the segment ------------------------------------------------------------------------------------------------------ */

static void test_it_moves_with_the_segment(void **state)
{
	(void)state;
	run(0x10, 64, 8, MS);
	tell();
	close(segment.file);
	assert_int_equal(segment_keep_findable(&segment, NULL), 0);
	assert_true(predictions_read(&segment, &said));
	assert_int_equal(said.list[0].what, 0x10);
}

/* Another program calls other functions so. */
static void test_it_goes_with_the_execution(void **state)
{
	struct segment after;

	(void)state;
	run(0x10, 64, 8, MS);
	tell();
	segment_set_at_work(&segment);
	atomic_fetch_add(&segment.memory->execution, 1);
	assert_true(segment_find_own(&after));
	assert_false(predictions_read(&after, &said));
	segment_close(&after);
	assert_false(predictions_read(&segment, &said));
}

static void test_lists_that_are_none(void **state)
{
	struct segment_predictions *place = &segment.memory->predictions;
	const uint64_t counts[] = {PREDICTIONS_MAX + 1, UINT64_C(1) << 32, UINT64_MAX};

	(void)state;
	run(0x10, 64, 8, MS);
	for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
		tell();
		atomic_store(&place->versions[place->number % PREDICTIONS_VERSIONS][0], counts[i]);
		assert_false(predictions_read(&segment, &said));
	}
	/* Any other numbers are numbers. */
	for (unsigned int i = 0; i < PREDICTIONS_WORDS; i++)
		atomic_store(&place->versions[place->number % PREDICTIONS_VERSIONS][i], i > 0 ? UINT64_MAX : PREDICTIONS_MAX);
	assert_true(predictions_read(&segment, &said));
	assert_int_equal(said.list[PREDICTIONS_MAX - 1].quality.came_ns, UINT64_MAX);
	/* The number goes on behind the last one. */
	atomic_store(&place->number, UINT64_MAX);
	tell();
	assert_int_equal(said.count, 1);
}

static atomic_bool is_done;

static void *tell_again_and_again(void *unused)
{
	struct predictions told = {.count = PREDICTIONS_MAX};

	(void)unused;
	for (uint64_t round = 1; !atomic_load(&is_done); round++) {
		told.all.known = round;
		for (unsigned int i = 0; i < PREDICTIONS_MAX; i++)
			told.list[i] = (struct prediction_of){.what = round, .quality = {.error_ns = round}};
		predictions_publish(&segment, &told);
	}
	return NULL;
}

/* What is read while it is written is of one moment, or not read. */
static void test_reading_while_it_is_written(void **state)
{
	pthread_t thread;
	unsigned int read = 0;

	(void)state;
	atomic_store(&is_done, false);
	assert_int_equal(pthread_create(&thread, NULL, tell_again_and_again, NULL), 0);
	for (unsigned int i = 0; i < 100000 || (read < 100 && i < 10000000); i++) {
		if (predictions_read(&segment, &said)) {
			read++;
			for (unsigned int entry = 0; entry < PREDICTIONS_MAX; entry++) {
				assert_int_equal(said.list[entry].what, said.all.known);
				assert_int_equal(said.list[entry].quality.error_ns, said.all.known);
			}
		}
	}
	atomic_store(&is_done, true);
	pthread_join(thread, NULL);
	assert_true(read > 0);
}

/* A writer that ends in the middle leaves what it said before. */
static void test_a_version_that_is_not_complete(void **state)
{
	struct segment_predictions *place = &segment.memory->predictions;

	(void)state;
	run(0x10, 64, 8, MS);
	tell();
	for (unsigned int i = 0; i < PREDICTIONS_WORDS; i++)
		atomic_store(&place->versions[(place->number + 1) % PREDICTIONS_VERSIONS][i], UINT64_MAX);
	assert_true(predictions_read(&segment, &said));
	assert_int_equal(said.list[0].what, 0x10);
}

/* --- what watchers make of it ------------------------------------------------------------------------------------------- */

static struct stamps_areas areas;

static struct stamps *make_ring(unsigned int number)
{
	struct error error;
	struct stamps *ring = stamps_take(&areas, &segment, number, first, ANYWHERE, &error);

	assert_non_null(ring);
	return ring;
}

static const struct look_function *function_of(const struct look_times *times, const char *name)
{
	const struct look_function *found = &times->functions[0];

	for (unsigned int i = 1; i < times->function_count; i++)
		found = strcmp(times->functions[i].name, name) == 0 ? &times->functions[i] : found;
	return found;
}

/* By the names that any of the rings has: two functions of one name are one; one without a name is with the nameless
 * ones. */
static void test_watchers_find_the_names(void **state)
{
	static const char one, same, other, nameless, graph;
	static struct look_times times;
	struct error error;
	struct stamps *rings[] = {make_ring(0), make_ring(1)};

	(void)state;
	stamps_name(rings[0], &one, "one");
	stamps_name(rings[1], &same, "one");
	stamps_name(rings[1], &other, "other");
	run((uintptr_t)&one, 64, 8, 16 * US);
	run((uintptr_t)&one, 64, 8, 32 * US);
	run((uintptr_t)&same, 64, 8, 64 * US);
	run((uintptr_t)&same, 64, 8, 64 * US);
	run((uintptr_t)&nameless, 64, 8, 64 * US);
	run((uintptr_t)&graph, 0, 8, 64 * US);
	tell();
	struct look *look = look_begin(getpid(), &error);

	assert_non_null(look);
	/* It is a sum already: the second take has no more than the first. */
	for (unsigned int i = 0; i < 2; i++) {
		assert_int_equal(look_take(look, &times, &error), 0);
		assert_quality(&function_of(&times, "one")->predicted, 2, 2, 80 * US, 96 * US, 16 * US);
		assert_quality(&function_of(&times, "other")->predicted, 0, 0, 0, 0, 0);
		assert_quality(&times.functions[0].predicted, 0, 1, 0, 0, 0);
		assert_int_equal(times.graph_count, 1);
		assert_int_equal(times.graphs[0].instance, (uintptr_t)&graph);
		assert_quality(&times.graphs[0].predicted, 0, 1, 0, 0, 0);
		assert_quality(&times.predicted, 2, 4, 80 * US, 96 * US, 16 * US);
	}
	look_end(look);
	stamps_after_fork(&areas);
}

/* Sums of what cannot be true stay as large as numbers can be. */
static void test_watchers_of_hostile_programs(void **state)
{
	struct predictions told = {.count = PREDICTIONS_MAX};
	static struct look_times times;
	struct error error;

	(void)state;
	for (unsigned int i = 0; i < PREDICTIONS_MAX; i++)
		memset(&told.list[i].quality, 0xff, sizeof told.list[i].quality);
	predictions_publish(&segment, &told);
	struct look *look = look_begin(getpid(), &error);

	assert_non_null(look);
	assert_int_equal(look_take(look, &times, &error), 0);
	assert_quality(&times.functions[0].predicted, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX);
	for (unsigned int i = 0; i < PREDICTIONS_MAX; i++)
		told.list[i].is_graph = true;
	predictions_publish(&segment, &told);
	assert_int_equal(look_take(look, &times, &error), 0);
	assert_int_equal(times.graph_count, PREDICTIONS_MAX);
	/* Nothing is said any more. */
	predictions_forget(segment.memory);
	assert_int_equal(look_take(look, &times, &error), 0);
	assert_int_equal(times.graph_count, 0);
	assert_quality(&times.functions[0].predicted, 0, 0, 0, 0, 0);
	look_end(look);
}

/* Functions that nobody saw since the first look are not in the list. */
static void test_sums_of_functions(void **state)
{
	struct function_sums sums = {.count = 0};
	struct look_function came[] = {{.name = "one", .instances = 2, .predicted = {.known = 5}},
	                               {.name = "other", .predicted = {.known = 7}}};
	const struct look_times times = {.function_count = 2, .functions = came};

	(void)state;
	function_sums_add(&sums, &times);
	came[0].instances = 0;
	came[0].predicted.known = 6;
	function_sums_add(&sums, &times);
	assert_int_equal(sums.count, 1);
	assert_int_equal(sums.list[0].instances, 2);
	assert_int_equal(sums.list[0].predicted.known, 6);
	function_sums_free(&sums);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_nothing_was_said_yet, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_functions_and_graphs, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_function_with_another_handle, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_more_than_there_is_room_for, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_what_is_forgotten_is_not_said_any_more, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_it_moves_with_the_segment, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_it_goes_with_the_execution, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_lists_that_are_none, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_reading_while_it_is_written, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_version_that_is_not_complete, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_watchers_find_the_names, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_watchers_of_hostile_programs, set_up, tear_down),
		cmocka_unit_test(test_sums_of_functions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
