/* Launches that are in flight: how many have not ended, and in which order those come that have. */
#include "shim/in_flight.h"

#include "base/process_clock.h"
#include "state/counts_layout.h"
#include "state/stamps_layout.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

static struct in_flight *all;
static struct stamps *stamps;
static struct counts_place *place;

static int set_up(void **state)
{
	(void)state;
	all = calloc(1, sizeof *all);
	stamps = aligned_alloc(COUNTS_PAGE, sizeof *stamps);
	place = aligned_alloc(COUNTS_PAGE, sizeof *place);
	if (stamps && place) {
		memset(stamps, 0, sizeof *stamps);
		memset(place, 0, sizeof *place);
		counts_begin(place);
	}
	return all && stamps && place ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	free(all);
	free(stamps);
	free(place);
	return 0;
}

static uint64_t add_record(void)
{
	return stamps_add_launch(stamps, &(const struct stamps_launch){.launched_ns = 1}).number;
}

/* As the GPU does. */
static void end_kernel(uint64_t record)
{
	atomic_store(&stamps->cells[record % STAMPS_CELLS].number, record);
}

static void end_nodes(uint64_t kernels)
{
	atomic_fetch_add(counts_ended(place, COUNTS_NODE), kernels);
}

static struct in_flight_launch *add_kernel(uint64_t *record)
{
	struct in_flight_launch *launch = in_flight_add(all);

	*record = add_record();
	in_flight_is_kernel(launch, stamps, *record);
	return launch;
}

static void assert_takes(struct in_flight_launch *const expected[], unsigned int count)
{
	struct in_flight_launch *taken[IN_FLIGHT_MAX];

	assert_int_equal(in_flight_take(all, taken, IN_FLIGHT_MAX), count);
	for (unsigned int i = 0; i < count; i++) {
		assert_ptr_equal(taken[i], expected[i]);
		in_flight_free(all, taken[i]);
	}
}

static void test_kernels(void **state)
{
	struct in_flight_launch *launches[3];
	uint64_t records[3];

	(void)state;
	assert_int_equal(in_flight_look(all, 1), 0);
	for (unsigned int i = 0; i < 3; i++)
		launches[i] = add_kernel(&records[i]);
	assert_int_equal(in_flight_look(all, 2), 3);
	assert_takes(NULL, 0);
	end_kernel(records[2]);
	end_kernel(records[0]);
	uint64_t before = process_clock_ns();

	assert_int_equal(in_flight_look(all, 3), 1);
	assert_int_equal(launches[0]->unseen, 2);
	/* When it was seen, not when the look began. */
	assert_true(launches[0]->seen >= before && launches[0]->seen <= process_clock_ns());
	assert_int_equal(launches[1]->unseen, 3);
	assert_takes((struct in_flight_launch *[]){launches[0], launches[2]}, 2);
	end_kernel(records[1]);
	assert_int_equal(in_flight_look(all, 4), 0);
	assert_takes(&launches[1], 1);
}

/* Ends that are seen one after the other come in the order of the launches nevertheless. */
static void test_order(void **state)
{
	struct in_flight_launch *launches[2];
	uint64_t records[2];

	(void)state;
	for (unsigned int i = 0; i < 2; i++)
		launches[i] = add_kernel(&records[i]);
	end_kernel(records[1]);
	assert_int_equal(in_flight_look(all, 1), 1);
	end_kernel(records[0]);
	assert_int_equal(in_flight_look(all, 2), 0);
	assert_takes(launches, 2);
}

static void test_call(void **state)
{
	struct in_flight_launch *launch = in_flight_add(all);

	(void)state;
	assert_int_equal(in_flight_look(all, 1), 1);
	in_flight_give_up(all, 2);
	assert_int_equal(in_flight_count(all), 1);
	in_flight_is_nothing(launch);
	assert_int_equal(in_flight_look(all, 3), 0);
	assert_takes(&launch, 1);
}

/* A second graph is launched before the first has ended. */
static void test_graphs(void **state)
{
	struct in_flight_launch *launches[2];

	(void)state;
	for (unsigned int i = 0; i < 2; i++) {
		launches[i] = in_flight_add(all);
		counts_launch_nodes(place, 10);
		in_flight_is_graph(launches[i], place, NULL, 0);
	}
	end_nodes(9);
	assert_int_equal(in_flight_look(all, 1), 2);
	end_nodes(1);
	assert_int_equal(in_flight_look(all, 2), 1);
	end_nodes(10);
	assert_int_equal(in_flight_look(all, 3), 0);
	assert_takes(launches, 2);
}

/* A kernel of it counts as launched, and never as ended. */
static void test_graph_with_uncounted(void **state)
{
	struct in_flight_launch *launch = in_flight_add(all);

	(void)state;
	counts_launch_nodes(place, 10);
	counts_note_uncounted(place, COUNTS_NODE, 1);
	in_flight_is_graph(launch, place, NULL, 0);
	end_nodes(8);
	assert_int_equal(in_flight_look(all, 1), 1);
	end_nodes(1);
	assert_int_equal(in_flight_look(all, 2), 0);
}

static void test_context_is_gone(void **state)
{
	struct in_flight_launch *graph = in_flight_add(all);
	uint64_t record;

	(void)state;
	counts_launch_nodes(place, 10);
	in_flight_is_graph(graph, place, NULL, 0);
	add_kernel(&record);
	assert_int_equal(in_flight_look(all, 1), 2);
	counts_end(place);
	stamps_end(stamps);
	assert_int_equal(in_flight_look(all, 2), 0);
}

static void test_given_up(void **state)
{
	struct in_flight_launch *launch;
	uint64_t record;

	(void)state;
	launch = add_kernel(&record);
	in_flight_give_up(all, 1);
	assert_int_equal(in_flight_count(all), 0);
	assert_takes(&launch, 1);
}

/* No release was written into its descriptor; its cell is another's by now. */
static void test_end_cannot_be_seen(void **state)
{
	uint64_t taken_back, old;

	(void)state;
	add_kernel(&taken_back);
	stamps_take_back(stamps, (struct stamps_cell){.number = taken_back});
	add_kernel(&old);
	assert_int_equal(in_flight_look(all, 1), 1);
	for (unsigned int i = 1; i < STAMPS_CELLS; i++)
		add_record();
	assert_int_equal(in_flight_look(all, 2), 1);
	add_record();
	assert_int_equal(in_flight_look(all, 3), 0);
}

static void test_full(void **state)
{
	struct in_flight_launch *taken[IN_FLIGHT_MAX];
	uint64_t record;

	(void)state;
	for (unsigned int i = 0; i < IN_FLIGHT_MAX; i++) {
		add_kernel(&record);
		end_kernel(record);
	}
	assert_null(in_flight_add(all));
	assert_int_equal(in_flight_look(all, 1), 0);
	assert_null(in_flight_add(all));
	assert_int_equal(in_flight_take(all, taken, 1), 1);
	in_flight_free(all, taken[0]);
	assert_ptr_equal(in_flight_add(all), taken[0]);
	assert_null(in_flight_add(all));
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		CASE(test_kernels),
		CASE(test_order),
		CASE(test_call),
		CASE(test_graphs),
		CASE(test_graph_with_uncounted),
		CASE(test_context_is_gone),
		CASE(test_given_up),
		CASE(test_end_cannot_be_seen),
		CASE(test_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
