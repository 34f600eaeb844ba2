/* Who looks at a process, the memory in which the ends of kernels get their times, and what a watcher makes of it. */
/* link: -Wl,--wrap=process_clock_ns */
#include "../cases.h"
#include "own_segment.h"
#include "state/segment/layout.h"

#include "base/clock.h"
#include "base/purse.h"
#include "monitor/estimate/graph_times.h"
#include "monitor/monitor.h"
#include "state/kernels/counts.h"
#include "state/kernels/timestamps_read.h"
#include "state/segment/edit.h"
#include "state/segment/find.h"
#include "state/segment/lease.h"
#include "state/segment/owner.h"

/* A watcher tells here that it raises the number. */
static int raise_now(struct segment *of, struct error *why);

#define segment_raise raise_now
#include "../../src/state/segment/lease.c"
#undef segment_raise

static struct error error;

#define ANYWHERE (UINT64_C(1) << 57)
#define MS UINT64_C(1000000)

/* The clock of base/clock.h, for all that is linked here: each look at it takes a microsecond. */
static atomic_uint_fast64_t now_ns = 1000000 * MS;

WRAP(uint64_t, process_clock_ns, void)
{
	return atomic_fetch_add(&now_ns, 1000) + 1000;
}

static void pass(uint64_t ns)
{
	atomic_fetch_add(&now_ns, ns);
}

static struct segment segment, watcher; /* the owner's, and as others have it */
static struct counts_areas counts_areas;
static struct timestamps_areas areas;
static struct counts_place *place;
static struct timestamps *stamps;
static struct timestamps_reader reader;
static struct monitor *look; /* NULL: nobody looks */

static struct timestamps *take_ring(unsigned int number)
{
	struct timestamps *ring = timestamps_take(&areas, &segment, number, first, ANYWHERE, &error);

	assert_non_null(ring);
	return ring;
}

FIXTURE(set_up)
{
	segment = make_segment();
	assert_int_equal(segment_open(&watcher, getpid(), NULL, NULL), SEGMENT_FOUND);
	place = counts_take(&counts_areas, &segment, first, ANYWHERE, false, &error);
	assert_non_null(place);
	counts_begin(place);
	stamps = take_ring(counts_number(place));
	timestamps_begin(stamps, true);
	timestamps_reader_begin(&reader, stamps);
}

FIXTURE(tear_down)
{
	monitor_end(look);
	look = NULL;
	counts_after_fork(&counts_areas);
	timestamps_after_fork(&areas);
	segment_close(&watcher);
	segment_close(&segment);
}

static uint64_t number(void)
{
	return segment_revision_number(&segment);
}

TEST(a_lease_ends_by_itself)
{
	uint64_t now = process_clock_ns(), before = number();

	assert_int_equal(lease_renew(&watcher, now - LEASE_NS - MS, NULL), 0);
	assert_false(segment_is_watched(&segment));
	assert_int_equal(number(), before + 1);
	/* Nobody looked at this moment: so the number is raised again. */
	assert_int_equal(lease_renew(&watcher, now, NULL), 0);
	assert_true(segment_is_watched(&segment));
	assert_int_equal(number(), before + 2);
	assert_int_equal(lease_renew(&watcher, now + MS, NULL), 0);
	assert_int_equal(number(), before + 2);
}

/* The segment is anybody's of this user: a time that no watcher writes does not keep the process at it for ever. */
TEST(a_lease_that_lasts_too_long)
{
	uint64_t now = process_clock_ns();

	atomic_store(&segment.memory->lease, now + LEASE_LONGEST_NS + 1000 * MS);
	assert_false(segment_is_watched(&segment));
	assert_int_equal(lease_renew(&watcher, now, NULL), 0);
	assert_true(segment_is_watched(&segment));
}

/* It died after it had written the lease: the process has not been told. */
TEST(a_watcher_that_dies_at_the_wrong_moment)
{
	uint64_t now = process_clock_ns(), before = number();

	atomic_store(&segment.memory->lease, (now + LEASE_NS) & ~UINT64_C(1));
	assert_int_equal(lease_renew(&watcher, now, NULL), 0);
	assert_int_equal(number(), before + 1);
}

static uint64_t meanwhile; /* 0: nothing happens */

static int raise_now(struct segment *of, struct error *why)
{
	int result = segment_raise(of, why);

	if (meanwhile != 0)
		atomic_store(&of->memory->lease, meanwhile);
	meanwhile = 0;
	return result;
}

/* After its raise, and before it notes that, its lease has ended, and another watcher has written one; that died before
 * it could raise the number itself. */
TEST(a_watcher_that_is_late)
{
	uint64_t now = process_clock_ns(), before = number(), other = (now + LEASE_NS + MS) & ~ANNOUNCED;

	meanwhile = other;
	assert_int_equal(lease_renew(&watcher, now - LEASE_NS, NULL), 0);
	assert_int_equal(atomic_load(&segment.memory->lease), other);
	assert_int_equal(lease_renew(&watcher, now + 2 * MS, NULL), 0);
	assert_int_equal(number(), before + 2);
}

static struct segment_revision given, replaced;

static void change_and_look(struct segment *by)
{
	struct segment_partition other = partition_of(first, 20, 27);

	given = revision_of(&other);
	assert_int_equal(segment_change(by, &given, &replaced, NULL), 0);
	assert_int_equal(segment_raise(by, NULL), 0);
}

/* An edit that is taken back although somebody has begun to look meanwhile; but not if there was another edit. */
TEST(looking_is_no_edit)
{
	change_and_look(&watcher);
	assert_set(&segment, first, 20, 27);
	assert_int_equal(segment_take_back(&watcher, &given, &replaced, NULL), 0);
	assert_set(&segment, first, 0, 7);
	change_and_look(&watcher);
	assert_int_equal(change(&watcher, first, 30, 37), 0);
	assert_int_equal(segment_take_back(&watcher, &given, &replaced, NULL), 0);
	assert_set(&segment, first, 30, 37);
}

/* The number of what is in force is the group's, too. Its own segment and watcher, since it is in a group. */
TEST_WITH(no_fixture, NULL, looking_is_no_edit_in_a_group)
{
	struct segment_partition groups = partition_of(first, 10, 17), later = partition_of(first, 30, 37);
	struct segment_revision revision = revision_of(&groups), later_revision = revision_of(&later);
	struct segment member, editor;
	struct group group;

	assert_int_equal(group_create(&group, "", &revision, NULL), 0);
	int descriptor = dup(group.file);

	assert_int_equal(segment_create(&member, &revision, &group, descriptor, -1, NULL), 0);
	assert_int_equal(segment_open(&editor, getpid(), NULL, NULL), SEGMENT_FOUND);
	uint64_t before = segment_revision_number(&member);

	assert_int_equal(segment_raise(&editor, NULL), 0);
	assert_int_equal(segment_revision_number(&member), before + 1);
	change_and_look(&editor);
	assert_set(&member, first, 20, 27);
	assert_int_equal(segment_take_back(&editor, &given, &replaced, NULL), 0);
	assert_set(&member, first, 10, 17);
	assert_int_equal(group_change(&editor.group, &later_revision, NULL), 0);
	assert_int_equal(segment_raise(&editor, NULL), 0);
	assert_set(&member, first, 30, 37);
	segment_close(&editor);
	segment_close(&member);
	close(descriptor);
}

/* --- the ring --------------------------------------------------------------------------------------------------- */

static struct timestamps_event events[TIMESTAMPS_CELLS + 1];
static unsigned int event_count;

static void on_event(const struct timestamps_event *event, void *data)
{
	assert_true(event_count <= TIMESTAMPS_CELLS);
	events[event_count++] = *event;
}

static uint64_t scan(unsigned int running)
{
	event_count = 0;
	return timestamps_scan(&reader, running, on_event, NULL);
}

static uint64_t stream_of_test; /* 0 at the begin of a test */

static unsigned int tpcs_of_test = 7;

static char function_of_test;

static const struct qmd_grid grid_of_test = {INT32_MAX, 65535, 2};

static void assert_grid(struct qmd_grid grid)
{
	assert_memory_equal(&grid, &grid_of_test, sizeof grid);
}

/* Exec, function, TPCs, nodes. */
#define NODE(...) (&(const struct timestamps_node){__VA_ARGS__, grid_of_test})

static struct timestamps_cell launch(uint64_t time)
{
	return timestamps_add_launch(stamps, &(const struct timestamps_launch){time, &function_of_test, stream_of_test,
	                                                                       tpcs_of_test, grid_of_test});
}

/* As the hardware does. */
static void finish(struct timestamps_cell cell, uint64_t time)
{
	_Atomic uint64_t *words = (_Atomic uint64_t *)(void *)((char *)timestamps_cells(stamps) + cell.at);

	atomic_store(&words[1], time);
	atomic_store(&words[0], cell.number);
}

TEST(launched_and_ended)
{
	struct timestamps_cell one = launch(10), two = launch(20);

	assert_int_equal(scan(TIMESTAMPS_CELLS), 0);
	assert_each(event_count, 2, events[0].state, TIMESTAMPS_RUNNING, events[0].was_looked_at, false);
	assert_each(events[0].launched_ns, 10, events[0].tpcs, 7);
	assert_grid(events[0].grid);
	finish(two, 1000);
	scan(TIMESTAMPS_CELLS);
	assert_each(event_count, 2, events[0].was_looked_at, true, events[1].state, TIMESTAMPS_ENDED);
	assert_int_equal(events[1].timestamp_ns, 1000);
	finish(one, 1001);
	scan(TIMESTAMPS_CELLS);
	assert_each(event_count, 1, events[0].timestamp_ns, 1001);
	scan(TIMESTAMPS_CELLS);
	assert_int_equal(event_count, 0);
}

static void set_tpcs(struct timestamps_cell cell, unsigned int tpcs)
{
	timestamps_set_tpcs((const volatile uint64_t *)(void *)((char *)timestamps_cells(stamps) + cell.at), cell.number,
	                    tpcs);
}

TEST(more_tpcs_after_the_launch)
{
	struct timestamps_cell old = launch(1), two = launch(2);

	set_tpcs(two, 9);
	scan(TIMESTAMPS_CELLS);
	assert_each(event_count, 2, events[0].tpcs, 7, events[1].tpcs, 9);
	finish(two, 3);
	for (unsigned int i = 1; i < TIMESTAMPS_CELLS; i++)
		launch(i);
	set_tpcs(old, 9); /* a later launch has the cell */
	set_tpcs(timestamps_add_end(stamps), 9);
	scan(TIMESTAMPS_CELLS);
	for (unsigned int i = 0; i < event_count; i++)
		assert_int_equal(events[i].tpcs, 7);
}

/* The cell's former kernel ends late. */
TEST(another_kernels_stamp)
{
	struct timestamps_cell old = launch(1), new;

	for (unsigned int i = 1; i < TIMESTAMPS_CELLS; i++)
		launch(i);
	new = launch(TIMESTAMPS_CELLS);
	assert_int_equal(new.at, old.at);
	finish(old, 999);
	assert_int_equal(scan(TIMESTAMPS_CELLS), 1);
	assert_each(event_count, TIMESTAMPS_CELLS, events[TIMESTAMPS_CELLS - 1].state, TIMESTAMPS_RUNNING);
	finish(new, 1000);
	scan(TIMESTAMPS_CELLS);
	assert_int_equal(events[TIMESTAMPS_CELLS - 1].timestamp_ns, 1000);
}

/* By the number, the former kernel has ended. The time may come after the number. */
TEST(a_cell_keeps_its_number_and_not_its_time)
{
	struct timestamps_cell old = launch(1), new;
	_Atomic uint64_t *words = (_Atomic uint64_t *)(void *)((char *)timestamps_cells(stamps) + old.at);

	finish(old, 999);
	for (unsigned int i = 1; i < TIMESTAMPS_CELLS; i++)
		launch(i);
	new = launch(TIMESTAMPS_CELLS);
	assert_int_equal(new.at, old.at);
	assert_int_equal(words[0], old.number);
	words[0] = new.number;
	scan(TIMESTAMPS_CELLS);
	assert_each(event_count, TIMESTAMPS_CELLS, events[TIMESTAMPS_CELLS - 1].state, TIMESTAMPS_RUNNING);
}

TEST(what_is_overwritten_is_lost)
{
	for (unsigned int i = 0; i < 100; i++)
		finish(launch(i), 1 + i);
	scan(TIMESTAMPS_CELLS);
	assert_int_equal(event_count, 100);
	for (unsigned int i = 0; i < 3 * TIMESTAMPS_CELLS; i++)
		finish(launch(1000 + i), 1000 + i);
	assert_int_equal(scan(TIMESTAMPS_CELLS), 2 * TIMESTAMPS_CELLS);
	assert_each(event_count, TIMESTAMPS_CELLS, events[0].timestamp_ns, 1000 + 2 * TIMESTAMPS_CELLS);
	assert_int_equal(timestamps_oldest(&reader), 1000 + 2 * TIMESTAMPS_CELLS);
	/* Of those that had not ended, each is lost once. */
	for (unsigned int i = 0; i < TIMESTAMPS_CELLS; i++)
		launch(i);
	finish(launch(0), 1);
	assert_int_equal(scan(TIMESTAMPS_CELLS), 1);
	for (unsigned int i = 0; i < 10; i++)
		launch(i);
	assert_int_equal(scan(TIMESTAMPS_CELLS), 10);
}

TEST(what_never_ends)
{
	struct timestamps_cell cell = launch(2);

	launch(3);
	finish(cell, 10);
	timestamps_end(stamps);
	scan(TIMESTAMPS_CELLS);
	assert_each(event_count, 1, events[0].state, TIMESTAMPS_ENDED);
	launch(4);
	scan(TIMESTAMPS_CELLS);
	assert_int_equal(event_count, 1);
	timestamps_give_up(&reader);
	scan(TIMESTAMPS_CELLS);
	assert_int_equal(event_count, 0);
}

static struct timestamps_node_event seen; /* the node that was read last */

/* UINT64_MAX: the node is not there. */
static uint64_t time_of_node(uint64_t number)
{
	return timestamps_read_node(stamps, number, &seen) ? seen.timestamp_ns : UINT64_MAX;
}

TEST(nodes)
{
	static char exec, function;
	struct timestamps_cell one = timestamps_add_node(stamps, NODE(&exec, &function, 5, 0));
	uint64_t plain = one.number & ~TIMESTAMPS_IS_NODE;

	assert_int_equal(time_of_node(plain), 0);
	finish(one, 50);
	assert_each(time_of_node(plain), 50, seen.tpcs, 5);
	assert_ptr_equal((void *)seen.exec, &exec);
	assert_ptr_equal((void *)seen.function, &function);
	finish(one, 60);
	assert_int_equal(time_of_node(plain), 60);
	for (unsigned int i = 0; i < TIMESTAMPS_NODES; i++)
		timestamps_add_node(stamps, NODE(&exec, &function, 5, 0));
	finish(one, 70);
	assert_each(time_of_node(plain), UINT64_MAX, time_of_node(plain + TIMESTAMPS_NODES), 0);
	assert_int_equal(time_of_node(plain + TIMESTAMPS_NODES + 1), UINT64_MAX);
}

TEST(a_node_that_is_changed)
{
	static char exec, other, function, changed;
	const struct timestamps_node now = {&exec, &changed, 7, 0, grid_of_test};
	struct timestamps_cell one = timestamps_add_node(stamps, NODE(&exec, &function, 5, 0));

	assert_true(timestamps_has_node(stamps, one.number));
	assert_int_equal(timestamps_node_cell(one.number).at, one.at);
	assert_false(timestamps_set_node(stamps, one.number, NODE(&other, &changed, 7, 0)));
	assert_true(timestamps_set_node(stamps, one.number, &now));
	finish(one, 50);
	assert_true(timestamps_read_node(stamps, one.number & ~TIMESTAMPS_IS_NODE, &seen));
	assert_ptr_equal((void *)seen.function, &changed);
	assert_int_equal(seen.tpcs, 7);
	assert_grid(seen.grid);
	for (unsigned int i = 0; i < TIMESTAMPS_NODES; i++)
		timestamps_add_node(stamps, &now);
	assert_false(timestamps_has_node(stamps, one.number));
	assert_false(timestamps_set_node(stamps, one.number, &now));
}

/* It is no node, and has no time. */
TEST(the_nodes_of_a_function)
{
	static char exec, other, function;
	struct timestamps_cell cell = timestamps_add_node(stamps, NODE(&exec, &function, 0, 12));
	uint64_t plain = cell.number & ~TIMESTAMPS_IS_NODE, found = 0;

	finish(cell, 50);
	assert_true(timestamps_read_node(stamps, plain, &seen) && seen.is_break);
	assert_int_equal(timestamps_read_function(stamps, plain, (uintptr_t)&exec, &found), 12);
	assert_ptr_equal((void *)found, &function);
	assert_int_equal(timestamps_read_function(stamps, plain, (uintptr_t)&other, &found), 0);
	assert_int_equal(timestamps_read_function(stamps, plain + 1, (uintptr_t)&exec, &found), 0);
}

/* --- the order of nodes ----------------------------------------------------------------------------------------- */

/* A graph whose nodes run in this order: the driver's own in front, 0, 1, 2, … They were uploaded in another one. */
#define IN_A_ROW 5

static char some_exec, some_function;
static struct timestamps_cell front, row[IN_A_ROW];
static struct node_timestamps nodes;
static struct node_order order;

static uint64_t plain(struct timestamps_cell cell)
{
	return cell.number & ~TIMESTAMPS_IS_NODE;
}

static void add_row(bool has_front)
{
	const struct timestamps_node *own = NODE(&some_exec, NULL, 5, 0);
	const struct timestamps_node *node = NODE(&some_exec, &some_function, 5, 0);

	order = (struct node_order){.front = 0};
	row[0] = timestamps_add_node(stamps, node);
	if (has_front)
		front = timestamps_add_node(stamps, own);
	for (unsigned int i = IN_A_ROW - 1; i > 0; i--)
		row[i] = timestamps_add_node(stamps, node);
}

/* The nodes before this one have run again. */
static void replay(bool has_front, uint64_t begin, unsigned int until)
{
	if (has_front)
		finish(front, begin);
	for (unsigned int i = 0; i < until; i++)
		finish(row[i], begin + (i + 1) * 100);
}

static bool read_row(bool is_idle)
{
	return graph_times_read_nodes(&nodes, stamps, (uintptr_t)&some_exec, plain(row[0]), plain(row[1]), is_idle,
	                              &order);
}

static const struct times_calibration ways = {.graph = {.release_ns = 10, .next_ns = 1}, .front_ns = 5};

/* Of a node, by its place in the order; UINT64_MAX: not known. */
static uint64_t duration_of(unsigned int number)
{
	uint64_t duration;

	return graph_times_node_duration(&nodes, number, &ways, &duration) ? duration : UINT64_MAX;
}

TEST(a_launch_ends_with_its_latest_node)
{
	add_row(true);
	assert_false(read_row(false));
	replay(true, 1000, IN_A_ROW - 1);
	assert_false(read_row(false));
	replay(true, 1000, IN_A_ROW);
	assert_true(read_row(false));
	assert_each(nodes.end, 1500, graph_times_node_length(&nodes, &ways), 500 - 15, order.latest,
	            plain(row[IN_A_ROW - 1]));
	assert_each(duration_of(0), UINT64_MAX, duration_of(1), 100 - 15, duration_of(5), 100 - 11);
	/* An empty kernel: what its ways take is not always the same. */
	finish(row[IN_A_ROW - 1], 1408);
	assert_true(read_row(false));
	assert_int_equal(duration_of(5), 0);
}

/* The stamps of two launches: no time passes from the one's last node to the other's first. */
TEST(a_launch_runs_after_another)
{
	add_row(true);
	replay(true, 1000, IN_A_ROW);
	replay(true, 9000, 2);
	assert_true(read_row(false));
	assert_each(nodes.end, 1500, graph_times_node_length(&nodes, &ways), 0, nodes.newer, 3);
	assert_each(duration_of(0), UINT64_MAX, duration_of(3), UINT64_MAX, duration_of(4), 100 - 15);
	assert_true(duration_of(2) != UINT64_MAX);
}

/* Then the node that ended last is known only when nothing runs. */
TEST(nodes_without_a_front)
{
	add_row(false);
	replay(false, 1000, IN_A_ROW);
	assert_false(read_row(false));
	assert_true(read_row(true));
	assert_int_equal(nodes.end, 1500);
	replay(false, 9000, 2);
	assert_true(read_row(false));
	assert_each(nodes.end, 1500, nodes.newer, 3);
	replay(false, 9000, IN_A_ROW);
	assert_true(read_row(false));
	assert_int_equal(nodes.end, 9500);
}

/* In a larger graph, those that are neighbours in time may not be those that follow each other. */
TEST(nodes_with_a_break)
{
	order = (struct node_order){.front = 0};
	front = timestamps_add_node(stamps, NODE(&some_exec, NULL, 5, 0));
	row[0] = timestamps_add_node(stamps, NODE(&some_exec, &some_function, 5, 0));
	timestamps_add_node(stamps, &(const struct timestamps_node){.exec = &some_exec, .nodes = 1});
	row[1] = timestamps_add_node(stamps, NODE(&some_exec, &some_function, 5, 0));
	replay(true, 1000, 2);
	assert_true(graph_times_read_nodes(&nodes, stamps, (uintptr_t)&some_exec, plain(front), plain(row[1]), false,
	                                   &order));
	assert_each(nodes.count, 3, nodes.end, 1200, duration_of(1) != UINT64_MAX, true, duration_of(2), UINT64_MAX);
}

static const char *name_of(unsigned int entry)
{
	static char name[TIMESTAMPS_NAME_MAX + 1];
	uint64_t function;

	return timestamps_read_name(stamps, entry, &function, name) ? name : NULL;
}

TEST(names)
{
	static char one, two;

	assert_true(timestamps_want_name(stamps, &one));
	timestamps_name(stamps, &one, "_Z3onePf");
	assert_false(timestamps_want_name(stamps, &one));
	assert_true(timestamps_want_name(stamps, &two));
	timestamps_name(stamps, &two, NULL);
	assert_false(timestamps_want_name(stamps, &two));
	assert_int_equal(timestamps_names_count(stamps), 1);
	assert_string_equal(name_of(0), "_Z3onePf");
	/* The same again, and another function at the same address. */
	timestamps_forget_names();
	assert_true(timestamps_want_name(stamps, &one));
	timestamps_name(stamps, &one, "_Z3onePf");
	assert_int_equal(timestamps_names_count(stamps), 1);
	timestamps_forget_names();
	timestamps_name(stamps, &one, "other");
	assert_int_equal(timestamps_names_count(stamps), 2);
	assert_string_equal(name_of(1), "other");
	/* Another context knows nothing of it. */
	assert_true(timestamps_want_name(take_ring(5), &one));
}

TEST(more_names_than_there_is_room_for)
{
	static char functions[5 * TIMESTAMPS_FUNCTIONS];
	char text[32];

	for (unsigned int i = 0; i < 5 * TIMESTAMPS_FUNCTIONS; i++) {
		snprintf(text, sizeof text, "function %u", i);
		timestamps_name(stamps, &functions[i], text);
	}
	assert_int_equal(timestamps_names_count(stamps), TIMESTAMPS_FUNCTIONS);
	assert_string_equal(name_of(TIMESTAMPS_FUNCTIONS - 1), "function 1023");
	assert_null(name_of(TIMESTAMPS_FUNCTIONS));
}

/* --- looking ---------------------------------------------------------------------------------------------------- */

static struct monitor_times times;

static void begin_look(void)
{
	look = monitor_begin(getpid(), NULL, &error);
	assert_non_null(look);
}

static void take(void)
{
	assert_done(monitor_take(look, &times, NULL, &error));
}

/* A kernel that ends now, by counts and stamps, on a GPU whose clock is a second ahead. */
static void run_kernel(uint64_t ns, bool has_stamp)
{
	uint64_t now = process_clock_ns();
	struct timestamps_cell cell = launch(now - ns - 5000);

	counts_launch_shared(place);
	atomic_fetch_add(counts_ended(place, COUNTS_PLAIN), 1);
	if (has_stamp)
		finish(cell, now + 1000 * MS);
}

/* Its own TPCs are 8. */
TEST(what_is_borrowed_is_told)
{
	begin_look();
	monitor_tell(look, true, 100 * MS);
	run_kernel(0, true);
	run_kernel(400 * MS, true);
	tpcs_of_test = 9;
	run_kernel(0, true);
	stream_of_test = 0x1000; /* nothing is in front of it */
	run_kernel(400 * MS, true);
	stream_of_test = 0;
	tpcs_of_test = 7;
	take();
	assert_each(times.gpus[0].interval_count, 4, times.functions[0].overruns, 1);
	for (size_t i = 0; i < 4; i++) {
		const struct times_interval *kernel = &times.gpus[0].intervals[i];

		assert_grid(kernel->grid);
		assert_each(kernel->kind, TIMES_KERNEL, kernel->is_borrowed, i >= 2);
		assert_true(kernel->end > kernel->launched && kernel->begin <= kernel->end);
	}
	assert_int_equal(times.revision->count, 1);
	free(times.gpus[0].intervals);
	take();
	assert_each(times.gpus[0].interval_count, 0, times.functions[0].overruns, 0);
}

/* Clocks are compared by hundreds of looks at the ring. */
TEST(a_purse_pays_for_names_after_the_clocks)
{
	struct purse purse = {.left = 20000};

	begin_look();
	timestamps_name(stamps, &function_of_test, "some");
	run_kernel(0, true);
	assert_done(monitor_take(look, &times, &purse, &error));
	assert_int_equal(times.function_count, 2);
	assert_each(times.functions[1].instances, 1, times.gpus[0].lost, 0, purse.left > 0, true);
}

/* Nothing was in flight when the counts were read; a launch of a graph that came since then has not ended with its
 * first node. */
TEST(a_graph_that_has_just_been_launched)
{
	static char exec, function;
	begin_look();
	const struct timestamps_node node = {&exec, &function, 5, 0, grid_of_test},
	                             share = {&exec, &function, 5, 2, grid_of_test};

	run_kernel(0, true);
	struct timestamps_cell one = timestamps_add_node(stamps, &node), other = timestamps_add_node(stamps, &node);
	struct timestamps_cell functions = timestamps_add_node(stamps, &share);
	uint64_t soon = process_clock_ns() + 200 * MS;

	timestamps_add_graph(
	    stamps, &(const struct timestamps_graph){soon, &exec, 0, one.number, other.number, functions.number, 2});
	finish(one, soon + 1000 * MS + 10000);
	take();
	assert_int_equal(times.functions[0].instances, 1);
	finish(other, soon + 1000 * MS + 20000);
	pass(200 * MS);
	take();
	assert_int_equal(times.functions[0].instances, 2);
}

static const struct times_interval *told(enum times_kind kind)
{
	const struct times_interval *found = NULL;

	for (size_t i = 0; i < times.gpus[0].interval_count && !found; i++)
		found = times.gpus[0].intervals[i].kind == kind ? &times.gpus[0].intervals[i] : NULL;
	return found;
}

/* By an interval, with the nodes of the last launch inside: the nodes do not make the GPU busier. */
TEST(a_graph_is_told)
{
	static char exec, function;
	begin_look();
	const struct timestamps_node node = {&exec, &function, 5, 0, grid_of_test},
	                             wide = {&exec, &function, 9, 0, grid_of_test},
	                             share = {&exec, &function, 5, 3, grid_of_test};

	monitor_tell(look, true, 0);
	run_kernel(0, true);
	take();
	free(times.gpus[0].intervals);
	struct timestamps_cell one = timestamps_add_node(stamps, &node), middle = timestamps_add_node(stamps, &wide),
	                       other = timestamps_add_node(stamps, &node);
	struct timestamps_cell functions = timestamps_add_node(stamps, &share);
	uint64_t launched = process_clock_ns();

	timestamps_add_graph(stamps, &(const struct timestamps_graph){launched, &exec, 0, one.number, other.number,
	                                                              functions.number, 3});
	finish(one, launched + 1000 * MS + 1 * MS);
	finish(middle, launched + 1000 * MS + 3 * MS);
	finish(other, launched + 1000 * MS + 4 * MS);
	pass(10 * MS);
	take();
	const struct times_interval *graph = told(TIMES_GRAPH), *inside = told(TIMES_NODE);

	assert_non_null(graph);
	assert_non_null(inside);
	assert_each(graph->stream, (uintptr_t)&exec, inside->stream, (uintptr_t)&exec, inside->tpcs, 9);
	assert_int_equal(graph->grid.width, 0);
	assert_grid(inside->grid);
	assert_in_range(inside->end - inside->begin, MS, 2 * MS);
	assert_true(inside->begin >= graph->begin && inside->end <= graph->end);
	assert_in_range(times.gpus[0].busy_ns, graph->end - graph->begin - MS, graph->end - graph->begin);
	assert_int_equal(times.gpus[0].tpc_ns, 5 * times.gpus[0].busy_ns);
	free(times.gpus[0].intervals);
}

/* Its kernels are lost, and how busy the GPU was is not known: just for this take. */
TEST(a_graph_that_does_not_tell_its_end)
{
	enum { KERNELS = 3 };
	static char exec;

	begin_look();
	run_kernel(0, true);
	take();
	assert_true(times.gpus[0].is_time_known);
	run_kernel(0, true);
	timestamps_add_graph(stamps, &(const struct timestamps_graph){
					 .launched_ns = process_clock_ns(), .exec = &exec, .kernels = KERNELS});
	take();
	assert_each(times.gpus[0].lost, KERNELS, times.gpus[0].is_time_known, false);
	run_kernel(0, true);
	take();
	assert_each(times.gpus[0].lost, 0, times.gpus[0].is_time_known, true);
}

static uint64_t durations_behind_a_graph(uint64_t stream_of_graph, uint64_t stream_of_kernel)
{
	static char exec;
	uint64_t now = process_clock_ns();

	timestamps_add_graph(stamps, &(const struct timestamps_graph){
					 .launched_ns = now, .exec = &exec, .stream = stream_of_graph, .kernels = 1});
	stream_of_test = stream_of_kernel;
	run_kernel(20 * MS, true);
	take();
	stream_of_test = 0;
	assert_int_equal(times.functions[0].instances, 1);
	return times.functions[0].durations.count;
}

/* Its kernels' times are not known, if it is in their stream, or may be. */
TEST(kernels_behind_a_graph_that_does_not_tell_its_end)
{
	static char exec;

	begin_look();
	timestamps_add_node(stamps, &(const struct timestamps_node){.exec = &exec});
	run_kernel(0, true); /* the clocks are known by it */
	run_kernel(20 * MS, true);
	take();
	assert_int_equal(times.functions[0].instances, 2);
	assert_in_range(times.functions[0].durations.count, 1, 2);
	assert_int_equal(durations_behind_a_graph(0x1000, 0x1000), 0);
	assert_int_equal(durations_behind_a_graph(0x1000, 0x1040), 1);
	assert_int_equal(durations_behind_a_graph(0x1000, 0x2000 | TIMESTAMPS_STREAM_UNKNOWN), 0);
}

/* A hostile program names nodes that no program comes to. */
TEST(nodes_without_an_end)
{
	static const struct {
		uint64_t first, nodes;
	} graphs[] = {{UINT64_MAX, 0}, {1, UINT32_MAX}, {UINT64_MAX - 1, 1}, {5, UINT64_C(0xffffffff00000000)}};
	static char execs[COUNT_OF(graphs)];
	begin_look();

	run_kernel(0, true);
	take();
	for (size_t i = 0; i < COUNT_OF(graphs); i++) {
		uint64_t now = process_clock_ns();

		timestamps_add_graph(stamps, &(const struct timestamps_graph){now, &execs[i], 0, 1, 1, 1, 2});
		struct timestamps_record *record = &stamps->records[atomic_load(&stamps->launches) % TIMESTAMPS_CELLS];

		atomic_store(&record->function, graphs[i].first);
		atomic_store(&record->nodes, graphs[i].nodes);
		take();
		assert_int_equal(times.function_count, 1);
	}
}

/* A short kernel was launched long ago, and nobody saw when it ended: it may have been just now. */
TEST(a_program_that_is_nearly_idle)
{
	begin_look();
	for (int i = 0; i < 3; i++) {
		uint64_t now = process_clock_ns();

		counts_launch_shared(place);
		struct timestamps_cell cell = launch(now);

		pass(30 * MS);
		atomic_fetch_add(counts_ended(place, COUNTS_PLAIN), 1);
		finish(cell, now + 15000 + 1000 * MS);
		take();
		assert_each(times.gpus[0].gaps, 1 << MONITOR_CLOCKS, times.gpus[0].is_time_known, false);
		assert_each(times.gpus[0].kernels, 1, times.gpus[0].timed, 1);
		/* Nor are those takes known in which it does nothing: else only these were. */
		take();
		assert_false(times.gpus[0].is_time_known);
	}
	/* Once one was seen to end, it is known. */
	run_kernel(0, true);
	take();
	run_kernel(0, true);
	pass(10 * MS);
	take();
	assert_each(times.gpus[0].gaps, 0, times.gpus[0].is_time_known, true, times.gpus[0].busy_ns < 1 * MS, true);
}

/* Kernels end, and have no stamps: it takes two looks to be sure. */
TEST(a_profiler)
{
	begin_look();
	run_kernel(MS, false);
	run_kernel(MS, false);
	take();
	assert_int_equal(times.gpus[0].gaps, 0);
	take();
	assert_each(times.gpus[0].gaps, 1 << MONITOR_PROFILER, times.gpus[0].is_time_known, false);
	/* It has gone. */
	take();
	run_kernel(0, true);
	take();
	assert_each(times.gpus[0].gaps, 0, times.gpus[0].is_time_known, true);
}

/* What runs for long is no profiler. */
TEST(a_long_kernel)
{
	begin_look();
	counts_launch_shared(place);
	struct timestamps_cell cell = launch(process_clock_ns());

	for (int i = 0; i < 3; i++) {
		pass(2 * MS);
		take();
		assert_each(times.gpus[0].gaps, 0, times.gpus[0].busy_ns > 0, true);
	}
	atomic_fetch_add(counts_ended(place, COUNTS_PLAIN), 1);
	finish(cell, process_clock_ns() + 1000 * MS);
	take();
	assert_int_equal(times.gpus[0].timed, 1);
	take();
	assert_int_equal(times.gpus[0].busy_ns, 0);
}

TEST(why_nothing_is_known)
{
	begin_look();
	timestamps_note_gap(stamps, TIMESTAMPS_REFUSED);
	counts_note_gap(place, COUNTS_OLDER);
	take();
	assert_each(times.gpus[0].gaps, 1 << MONITOR_REFUSED | 1 << MONITOR_OLDER, times.gpus[0].is_time_known, false);
	counts_note_gap_everywhere(&segment, COUNTS_OFF);
	take();
	assert_int_equal(times.gpus[0].gaps, 1 << MONITOR_REFUSED | 1 << MONITOR_OLDER | 1 << MONITOR_OFF);
}

TEST(the_file_is_closed)
{
	close(areas.list[0].file);
	begin_look();
	take();
	assert_true(times.gpus[0].gaps & 1 << MONITOR_CLOSED);
	assert_false(times.gpus[0].is_time_known);
	areas.list[0].memory = NULL; /* for tear_down */
}

RUN_TESTS(set_up, tear_down)
