/* Who looks at a process, the memory in which the ends of kernels get their times, and what a watcher makes of it. */
#include "own_segment.h"

#include "base/process_clock.h"
#include "state/counts.h"
#include "state/layout.h"
#include "state/lease.h"
#include "state/look.h"
#include "state/node_stamps.h"
#include "state/stamps_read.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>

/* A watcher tells here that it raises the number. */
static int raise_now(struct segment *of, struct error *error);

#define segment_raise raise_now
#include "../../src/state/lease.c"
#undef segment_raise

#define ANYWHERE (UINT64_C(1) << 57)
#define MS UINT64_C(1000000)

static struct segment segment, watcher; /* the owner's, and as others have it */
static struct counts_areas counts_areas;
static struct stamps_areas areas;
static struct counts_place *place;
static struct stamps *stamps;
static struct stamps_reader reader;

static struct stamps *take_ring(unsigned int number)
{
	struct error error;
	struct stamps *ring = stamps_take(&areas, &segment, number, first, ANYWHERE, &error);

	if (!ring)
		fail_msg("%s", error.reason);
	return ring;
}

static int set_up(void **state)
{
	struct error error;

	(void)state;
	segment = make_segment();
	assert_int_equal(segment_open(&watcher, getpid(), NULL), SEGMENT_FOUND);
	place = counts_take(&counts_areas, &segment, first, ANYWHERE, false, &error);
	assert_non_null(place);
	counts_begin(place);
	stamps = take_ring(counts_number(place));
	stamps_begin(stamps, true);
	stamps_reader_begin(&reader, stamps);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	counts_after_fork(&counts_areas);
	stamps_after_fork(&areas);
	segment_close(&watcher);
	segment_close(&segment);
	return 0;
}

/* --- the lease -------------------------------------------------------------------------------------------------- */

static uint64_t number(void)
{
	return segment_revision_number(&segment);
}

static void test_nobody_looks(void **state)
{
	(void)state;
	assert_false(lease_is_on(&segment));
}

static void test_a_lease_ends_by_itself(void **state)
{
	uint64_t now = process_clock_ns(), before = number();

	(void)state;
	assert_int_equal(lease_renew(&watcher, now - LEASE_NS - MS, NULL), 0);
	assert_false(lease_is_on(&segment));
	assert_int_equal(number(), before + 1);
	/* Nobody looked at this moment: so the number is raised again. */
	assert_int_equal(lease_renew(&watcher, now, NULL), 0);
	assert_true(lease_is_on(&segment));
	assert_int_equal(number(), before + 2);
	assert_int_equal(lease_renew(&watcher, now + MS, NULL), 0);
	assert_int_equal(number(), before + 2);
}

/* One that would never end, and one on another clock. */
static void test_a_lease_that_is_none(void **state)
{
	uint64_t now = process_clock_ns();

	(void)state;
	atomic_store(&segment.memory->lease, UINT64_MAX);
	assert_false(lease_is_on(&segment));
	assert_int_equal(lease_renew(&watcher, now, NULL), 0);
	assert_true(lease_is_on(&segment));
	assert_true(atomic_load(&segment.memory->lease) <= now + LEASE_NS + 1);
	assert_int_equal(lease_renew(&watcher, now + UINT64_C(3600000000000), NULL), 0);
	assert_false(lease_is_on(&segment));
}

static void test_a_shorter_lease_shortens_none(void **state)
{
	uint64_t now = process_clock_ns();

	(void)state;
	assert_int_equal(lease_renew(&watcher, now + 100 * MS, NULL), 0);
	uint64_t lease = atomic_load(&segment.memory->lease);

	assert_int_equal(lease_renew(&watcher, now, NULL), 0);
	assert_int_equal(atomic_load(&segment.memory->lease), lease);
}

/* It died after it had written the lease: the process has not been told. */
static void test_a_watcher_that_dies_at_the_wrong_moment(void **state)
{
	uint64_t now = process_clock_ns(), before = number();

	(void)state;
	atomic_store(&segment.memory->lease, (now + LEASE_NS) & ~UINT64_C(1));
	assert_int_equal(lease_renew(&watcher, now, NULL), 0);
	assert_int_equal(number(), before + 1);
}

static uint64_t meanwhile; /* 0: nothing happens */

static int raise_now(struct segment *of, struct error *error)
{
	int result = segment_raise(of, error);

	if (meanwhile != 0)
		atomic_store(&of->memory->lease, meanwhile);
	meanwhile = 0;
	return result;
}

/* After its raise, and before it notes that, its lease has ended, and another watcher has written one; that died before it
 * could raise the number itself. */
static void test_a_watcher_that_is_late(void **state)
{
	uint64_t now = process_clock_ns(), before = number(), other = (now + LEASE_NS + MS) & ~ANNOUNCED;

	(void)state;
	meanwhile = other;
	assert_int_equal(lease_renew(&watcher, now - LEASE_NS, NULL), 0);
	assert_int_equal(atomic_load(&segment.memory->lease), other);
	assert_int_equal(lease_renew(&watcher, now + 2 * MS, NULL), 0);
	assert_int_equal(number(), before + 2);
}

/* An edit that is taken back although somebody has begun to look meanwhile; but not if there was another edit. */
static void test_looking_is_no_edit(void **state)
{
	struct segment_partition other = partition_of(first, 20, 27), third = partition_of(first, 30, 37);
	struct segment_undo undo;

	(void)state;
	assert_int_equal(segment_edit(&watcher, &other, 1, &undo, NULL), 0);
	assert_int_equal(segment_raise(&watcher, NULL), 0);
	assert_set(&segment, first, 20, 27);
	assert_int_equal(segment_take_back(&watcher, &undo, NULL), 0);
	assert_set(&segment, first, 0, 7);
	assert_int_equal(segment_edit(&watcher, &other, 1, &undo, NULL), 0);
	assert_int_equal(segment_raise(&watcher, NULL), 0);
	assert_int_equal(segment_edit(&watcher, &third, 1, NULL, NULL), 0);
	assert_int_equal(segment_take_back(&watcher, &undo, NULL), 0);
	assert_set(&segment, first, 30, 37);
}

/* The number of what is in force is the group's, too. Its own segment and watcher, since it is in a group. */
static void test_looking_is_no_edit_in_a_group(void **state)
{
	struct segment_partition groups = partition_of(first, 10, 17), own = partition_of(first, 20, 27),
	                         later = partition_of(first, 30, 37);
	struct segment_revision revision = revision_of(&groups);
	struct segment member, editor;
	struct segment_undo undo;
	struct group group;

	(void)state;
	assert_int_equal(group_create(&group, "", &revision, NULL), 0);
	int descriptor = dup(group.file);

	assert_int_equal(segment_create_in_group(&member, &revision, -1, &group, descriptor, NULL), 0);
	assert_int_equal(segment_open(&editor, getpid(), NULL), SEGMENT_FOUND);
	uint64_t before = segment_revision_number(&member);

	assert_int_equal(segment_raise(&editor, NULL), 0);
	assert_int_equal(segment_revision_number(&member), before + 1);
	assert_int_equal(segment_edit(&editor, &own, 1, &undo, NULL), 0);
	assert_int_equal(segment_raise(&editor, NULL), 0);
	assert_set(&member, first, 20, 27);
	assert_int_equal(segment_take_back(&editor, &undo, NULL), 0);
	assert_set(&member, first, 10, 17);
	assert_int_equal(group_edit(&editor.group, &later, 1, NULL), 0);
	assert_int_equal(segment_raise(&editor, NULL), 0);
	assert_set(&member, first, 30, 37);
	segment_close(&editor);
	segment_close(&member);
	close(descriptor);
}

/* --- the ring --------------------------------------------------------------------------------------------------- */

static struct stamps_event events[STAMPS_CELLS + 1];
static unsigned int event_count;

static void on_event(const struct stamps_event *event, void *data)
{
	(void)data;
	assert_true(event_count <= STAMPS_CELLS);
	events[event_count++] = *event;
}

static uint64_t scan(unsigned int running)
{
	event_count = 0;
	return stamps_scan(&reader, running, on_event, NULL);
}

static uint64_t stream_of_test; /* 0 at the begin of a test */

static struct stamps_cell launch(uint64_t time)
{
	static char function;

	return stamps_add_launch(stamps, &(const struct stamps_launch){time, &function, stream_of_test, 7});
}

/* As the hardware does. */
static void finish(struct stamps_cell cell, uint64_t time)
{
	_Atomic uint64_t *words = (_Atomic uint64_t *)(void *)((char *)stamps_cells(stamps) + cell.at);

	atomic_store(&words[1], time);
	atomic_store(&words[0], cell.number);
}

static void test_launched_and_ended(void **state)
{
	struct stamps_cell one = launch(10), two = launch(20);

	(void)state;
	assert_int_equal(scan(STAMPS_CELLS), 0);
	assert_int_equal(event_count, 2);
	assert_int_equal(events[0].state, STAMPS_RUNNING);
	assert_false(events[0].was_looked_at);
	assert_int_equal(events[0].launched_ns, 10);
	assert_int_equal(events[0].tpcs, 7);
	finish(two, 1000);
	scan(STAMPS_CELLS);
	assert_int_equal(event_count, 2);
	assert_true(events[0].was_looked_at);
	assert_int_equal(events[1].state, STAMPS_ENDED);
	assert_int_equal(events[1].stamp_ns, 1000);
	finish(one, 1001);
	scan(STAMPS_CELLS);
	assert_int_equal(event_count, 1);
	assert_int_equal(events[0].stamp_ns, 1001);
	scan(STAMPS_CELLS);
	assert_int_equal(event_count, 0);
}

/* The hardware may write one word first. */
static void test_half_a_stamp(void **state)
{
	struct stamps_cell cell = launch(10);
	_Atomic uint64_t *words = (_Atomic uint64_t *)(void *)((char *)stamps_cells(stamps) + cell.at);

	(void)state;
	atomic_store(&words[0], cell.number);
	scan(STAMPS_CELLS);
	assert_int_equal(events[0].state, STAMPS_RUNNING);
	atomic_store(&words[0], 0);
	atomic_store(&words[1], 1000);
	scan(STAMPS_CELLS);
	assert_int_equal(events[0].state, STAMPS_RUNNING);
}

/* The cell's former kernel ends late. */
static void test_another_kernels_stamp(void **state)
{
	struct stamps_cell old = launch(1), new;

	(void)state;
	for (unsigned int i = 1; i < STAMPS_CELLS; i++)
		launch(i);
	new = launch(STAMPS_CELLS);
	assert_int_equal(new.at, old.at);
	finish(old, 999);
	assert_int_equal(scan(STAMPS_CELLS), 1);
	assert_int_equal(event_count, STAMPS_CELLS);
	assert_int_equal(events[STAMPS_CELLS - 1].state, STAMPS_RUNNING);
	finish(new, 1000);
	scan(STAMPS_CELLS);
	assert_int_equal(events[STAMPS_CELLS - 1].stamp_ns, 1000);
}

static void test_what_is_overwritten_is_lost(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 100; i++)
		finish(launch(i), 1 + i);
	scan(STAMPS_CELLS);
	assert_int_equal(event_count, 100);
	for (unsigned int i = 0; i < 3 * STAMPS_CELLS; i++)
		finish(launch(1000 + i), 1000 + i);
	assert_int_equal(scan(STAMPS_CELLS), 2 * STAMPS_CELLS);
	assert_int_equal(event_count, STAMPS_CELLS);
	assert_int_equal(events[0].stamp_ns, 1000 + 2 * STAMPS_CELLS);
	assert_int_equal(stamps_oldest(&reader), 1000 + 2 * STAMPS_CELLS);
	/* Of those that had not ended, each is lost once. */
	for (unsigned int i = 0; i < STAMPS_CELLS; i++)
		launch(i);
	finish(launch(0), 1);
	assert_int_equal(scan(STAMPS_CELLS), 1);
	for (unsigned int i = 0; i < 10; i++)
		launch(i);
	assert_int_equal(scan(STAMPS_CELLS), 10);
}

static void test_what_never_ends(void **state)
{
	(void)state;
	stamps_take_back(stamps, launch(1));
	scan(STAMPS_CELLS);
	assert_int_equal(event_count, 0);
	struct stamps_cell cell = launch(2);

	launch(3);
	finish(cell, 10);
	stamps_end(stamps);
	scan(STAMPS_CELLS);
	assert_int_equal(event_count, 1);
	assert_int_equal(events[0].state, STAMPS_ENDED);
	launch(4);
	scan(STAMPS_CELLS);
	assert_int_equal(event_count, 1);
	stamps_give_up(&reader);
	scan(STAMPS_CELLS);
	assert_int_equal(event_count, 0);
}

static void test_a_scan_may_stop(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 10; i++)
		launch(i);
	scan(3);
	assert_int_equal(event_count, 3);
	scan(STAMPS_CELLS);
	assert_int_equal(event_count, 10);
	assert_true(events[2].was_looked_at);
	assert_false(events[3].was_looked_at);
}

static void test_nodes(void **state)
{
	static char exec, function;
	struct stamps_node_event node;
	struct stamps_cell one = stamps_add_node(stamps, &(const struct stamps_node){&exec, &function, 5, 0});
	uint64_t plain = one.number & ~STAMPS_IS_NODE;

	(void)state;
	assert_true(stamps_read_node(stamps, plain, &node));
	assert_int_equal(node.stamp_ns, 0);
	finish(one, 50);
	assert_true(stamps_read_node(stamps, plain, &node));
	assert_int_equal(node.stamp_ns, 50);
	assert_int_equal(node.tpcs, 5);
	assert_ptr_equal((void *)node.exec, &exec);
	assert_ptr_equal((void *)node.function, &function);
	finish(one, 60);
	assert_true(stamps_read_node(stamps, plain, &node));
	assert_int_equal(node.stamp_ns, 60);
	for (unsigned int i = 0; i < STAMPS_NODES; i++)
		stamps_add_node(stamps, &(const struct stamps_node){&exec, &function, 5, 0});
	finish(one, 70);
	assert_false(stamps_read_node(stamps, plain, &node));
	assert_true(stamps_read_node(stamps, plain + STAMPS_NODES, &node));
	assert_int_equal(node.stamp_ns, 0);
	assert_false(stamps_read_node(stamps, plain + STAMPS_NODES + 1, &node));
}

static void test_a_node_that_is_changed(void **state)
{
	static char exec, other, function, changed;
	const struct stamps_node now = {&exec, &changed, 7, 0};
	struct stamps_cell one = stamps_add_node(stamps, &(const struct stamps_node){&exec, &function, 5, 0});
	struct stamps_node_event node;

	(void)state;
	assert_true(stamps_has_node(stamps, one.number));
	assert_int_equal(stamps_node_cell(one.number).at, one.at);
	assert_false(stamps_set_node(stamps, one.number, &(const struct stamps_node){&other, &changed, 7, 0}));
	assert_true(stamps_set_node(stamps, one.number, &now));
	finish(one, 50);
	assert_true(stamps_read_node(stamps, one.number & ~STAMPS_IS_NODE, &node));
	assert_ptr_equal((void *)node.function, &changed);
	assert_int_equal(node.tpcs, 7);
	for (unsigned int i = 0; i < STAMPS_NODES; i++)
		stamps_add_node(stamps, &now);
	assert_false(stamps_has_node(stamps, one.number));
	assert_false(stamps_set_node(stamps, one.number, &now));
}

/* It is no node, and has no time. */
static void test_the_nodes_of_a_function(void **state)
{
	static char exec, other, function;
	struct stamps_cell cell = stamps_add_node(stamps, &(const struct stamps_node){&exec, &function, 0, 12});
	uint64_t plain = cell.number & ~STAMPS_IS_NODE, found = 0;
	struct stamps_node_event node;

	(void)state;
	finish(cell, 50);
	assert_true(stamps_read_node(stamps, plain, &node) && node.is_break);
	assert_int_equal(stamps_read_function(stamps, plain, (uintptr_t)&exec, &found), 12);
	assert_ptr_equal((void *)found, &function);
	assert_int_equal(stamps_read_function(stamps, plain, (uintptr_t)&other, &found), 0);
	assert_int_equal(stamps_read_function(stamps, plain + 1, (uintptr_t)&exec, &found), 0);
}

/* --- the order of nodes ----------------------------------------------------------------------------------------- */

/* A graph whose nodes run in this order: the driver's own in front, 0, 1, 2, … They were uploaded in another one. */
#define IN_A_ROW 5

static char some_exec, some_function;
static struct stamps_cell front, row[IN_A_ROW];
static struct node_stamps nodes;
static struct node_order order;

static uint64_t plain(struct stamps_cell cell)
{
	return cell.number & ~STAMPS_IS_NODE;
}

static void add_row(bool has_front)
{
	const struct stamps_node node = {&some_exec, &some_function, 5, 0}, own = {&some_exec, NULL, 5, 0};

	order = (struct node_order){.front = 0};
	row[0] = stamps_add_node(stamps, &node);
	if (has_front)
		front = stamps_add_node(stamps, &own);
	for (unsigned int i = IN_A_ROW - 1; i > 0; i--)
		row[i] = stamps_add_node(stamps, &node);
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
	return node_stamps_read(&nodes, stamps, (uintptr_t)&some_exec, plain(row[0]), plain(row[1]), is_idle, &order);
}

static const struct times_calibration ways = {.graph = {.release_ns = 10, .next_ns = 1}, .front_ns = 5};

static void test_a_launch_ends_with_its_latest_node(void **state)
{
	uint64_t duration;

	(void)state;
	add_row(true);
	assert_false(read_row(false));
	replay(true, 1000, IN_A_ROW - 1);
	assert_false(read_row(false));
	replay(true, 1000, IN_A_ROW);
	assert_true(read_row(false));
	assert_int_equal(nodes.end, 1500);
	assert_int_equal(node_stamps_length(&nodes, &ways), 500 - 15);
	assert_int_equal(order.latest, plain(row[IN_A_ROW - 1]));
	assert_false(node_stamps_duration(&nodes, 0, &ways, &duration));
	assert_true(node_stamps_duration(&nodes, 1, &ways, &duration));
	assert_int_equal(duration, 100 - 15);
	assert_true(node_stamps_duration(&nodes, 5, &ways, &duration));
	assert_int_equal(duration, 100 - 11);
	/* An empty kernel: what its ways take is not always the same. */
	finish(row[IN_A_ROW - 1], 1408);
	assert_true(read_row(false));
	assert_true(node_stamps_duration(&nodes, 5, &ways, &duration));
	assert_int_equal(duration, 0);
}

/* The stamps of two launches: no time passes from the one's last node to the other's first. */
static void test_a_launch_runs_after_another(void **state)
{
	uint64_t duration;

	(void)state;
	add_row(true);
	replay(true, 1000, IN_A_ROW);
	replay(true, 9000, 2);
	assert_true(read_row(false));
	assert_int_equal(nodes.end, 1500);
	assert_int_equal(node_stamps_length(&nodes, &ways), 0);
	assert_int_equal(nodes.newer, 3);
	assert_false(node_stamps_duration(&nodes, 0, &ways, &duration));
	assert_true(node_stamps_duration(&nodes, 2, &ways, &duration));
	assert_false(node_stamps_duration(&nodes, 3, &ways, &duration));
	assert_true(node_stamps_duration(&nodes, 4, &ways, &duration));
	assert_int_equal(duration, 100 - 15);
}

/* Then the node that ended last is known only when nothing runs. */
static void test_nodes_without_a_front(void **state)
{
	(void)state;
	add_row(false);
	replay(false, 1000, IN_A_ROW);
	assert_false(read_row(false));
	assert_true(read_row(true));
	assert_int_equal(nodes.end, 1500);
	replay(false, 9000, 2);
	assert_true(read_row(false));
	assert_int_equal(nodes.end, 1500);
	assert_int_equal(nodes.newer, 3);
	replay(false, 9000, IN_A_ROW);
	assert_true(read_row(false));
	assert_int_equal(nodes.end, 9500);
}

/* In a larger graph, those that are neighbours in time may not be those that follow each other. */
static void test_nodes_with_a_break(void **state)
{
	uint64_t duration;

	(void)state;
	order = (struct node_order){.front = 0};
	front = stamps_add_node(stamps, &(const struct stamps_node){&some_exec, NULL, 5, 0});
	row[0] = stamps_add_node(stamps, &(const struct stamps_node){&some_exec, &some_function, 5, 0});
	stamps_add_node(stamps, &(const struct stamps_node){.exec = &some_exec, .nodes = 1});
	row[1] = stamps_add_node(stamps, &(const struct stamps_node){&some_exec, &some_function, 5, 0});
	replay(true, 1000, 2);
	assert_true(node_stamps_read(&nodes, stamps, (uintptr_t)&some_exec, plain(front), plain(row[1]), false, &order));
	assert_int_equal(nodes.count, 3);
	assert_int_equal(nodes.end, 1200);
	assert_true(node_stamps_duration(&nodes, 1, &ways, &duration));
	assert_false(node_stamps_duration(&nodes, 2, &ways, &duration));
}

/* Cells of launches and of nodes are others. */
static void test_cells_lie_apart(void **state)
{
	struct stamps_cell node = stamps_add_node(stamps, &(const struct stamps_node){.tpcs = 1});
	uint64_t most = 0;

	(void)state;
	for (unsigned int i = 0; i < STAMPS_CELLS; i++) {
		struct stamps_cell cell = launch(i);

		assert_int_equal(cell.at % 16, 0);
		most = cell.at > most ? cell.at : most;
	}
	assert_int_equal(most, (STAMPS_CELLS - 1) * 16);
	assert_true(node.at > most && node.at < STAMPS_BYTES);
	assert_int_equal((uintptr_t)stamps_cells(stamps) % COUNTS_PAGE, 0);
}

/* --- names ------------------------------------------------------------------------------------------------------ */

static const char *name_of(unsigned int entry)
{
	static char name[STAMPS_NAME_MAX + 1];
	uint64_t function;

	return stamps_read_name(stamps, entry, &function, name) ? name : NULL;
}

static void test_names(void **state)
{
	static char one, two;

	(void)state;
	assert_true(stamps_want_name(stamps, &one));
	stamps_name(stamps, &one, "_Z3onePf");
	assert_false(stamps_want_name(stamps, &one));
	assert_true(stamps_want_name(stamps, &two));
	stamps_name(stamps, &two, NULL);
	assert_false(stamps_want_name(stamps, &two));
	assert_int_equal(stamps_names_count(stamps), 1);
	assert_string_equal(name_of(0), "_Z3onePf");
	/* The same again, and another function at the same address. */
	stamps_forget_names();
	assert_true(stamps_want_name(stamps, &one));
	stamps_name(stamps, &one, "_Z3onePf");
	assert_int_equal(stamps_names_count(stamps), 1);
	stamps_forget_names();
	stamps_name(stamps, &one, "other");
	assert_int_equal(stamps_names_count(stamps), 2);
	assert_string_equal(name_of(1), "other");
	/* Another context knows nothing of it. */
	assert_true(stamps_want_name(take_ring(5), &one));
}

static void test_more_names_than_there_is_room_for(void **state)
{
	static char functions[5 * STAMPS_FUNCTIONS];
	char text[32];

	(void)state;
	for (unsigned int i = 0; i < 5 * STAMPS_FUNCTIONS; i++) {
		snprintf(text, sizeof text, "function %u", i);
		stamps_name(stamps, &functions[i], text);
	}
	assert_int_equal(stamps_names_count(stamps), STAMPS_FUNCTIONS);
	assert_string_equal(name_of(STAMPS_FUNCTIONS - 1), "function 1023");
	assert_null(name_of(STAMPS_FUNCTIONS));
}

static void test_long_names(void **state)
{
	static char functions[200], text[2 * STAMPS_NAME_MAX];

	(void)state;
	memset(text, 'x', sizeof text - 1);
	for (unsigned int i = 0; i < sizeof functions; i++)
		stamps_name(stamps, &functions[i], text);
	assert_int_equal(stamps_names_count(stamps), STAMPS_TEXT / STAMPS_NAME_MAX);
	assert_int_equal(strlen(name_of(0)), STAMPS_NAME_MAX);
}

/* --- looking ---------------------------------------------------------------------------------------------------- */

static struct look_times times;

static struct look *begin_look(void)
{
	struct error error;
	struct look *look = look_begin(getpid(), &error);

	if (!look)
		fail_msg("%s", error.reason);
	return look;
}

static void take(struct look *look)
{
	struct error error;

	if (look_take(look, &times, &error) < 0)
		fail_msg("%s", error.reason);
}

/* A kernel that ends now, by counts and stamps, on a GPU whose clock is a second ahead. */
static void run_kernel(uint64_t ns, bool has_stamp)
{
	uint64_t now = process_clock_ns();
	struct stamps_cell cell = launch(now - ns - 5000);

	counts_launch_shared(place);
	atomic_fetch_add(counts_ended(place, COUNTS_PLAIN), 1);
	if (has_stamp)
		finish(cell, now + 1000 * MS);
}

static void test_looking(void **state)
{
	struct look *look = begin_look();

	(void)state;
	assert_true(lease_is_on(&segment));
	take(look);
	assert_int_equal(times.gpu_count, 1);
	assert_true(times.gpus[0].is_time_known);
	assert_int_equal(times.gpus[0].busy_ns, 0);
	run_kernel(20 * MS, true);
	run_kernel(0, true);
	take(look);
	assert_int_equal(times.gpus[0].gaps, 0);
	assert_true(times.gpus[0].is_time_known);
	assert_int_equal(times.gpus[0].kernels, 2);
	assert_int_equal(times.gpus[0].timed, 2);
	assert_true(pci_address_equal(times.gpus[0].pci, first));
	assert_int_equal(times.functions[0].instances, 2);
	look_end(look);
}

/* What was there before somebody looked is not new. */
static void test_what_was_before(void **state)
{
	(void)state;
	run_kernel(MS, true);
	struct look *look = begin_look();

	take(look);
	assert_int_equal(times.gpus[0].kernels, 0);
	assert_int_equal(times.gpus[0].timed, 0);
	look_end(look);
}

/* Nothing was in flight when the counts were read; a launch of a graph that came since then has not ended with its first
 * node. */
static void test_a_graph_that_has_just_been_launched(void **state)
{
	static char exec, function;
	struct look *look = begin_look();
	const struct stamps_node node = {&exec, &function, 5, 0}, share = {&exec, &function, 5, 2};

	(void)state;
	run_kernel(0, true);
	struct stamps_cell one = stamps_add_node(stamps, &node), other = stamps_add_node(stamps, &node);
	struct stamps_cell functions = stamps_add_node(stamps, &share);
	uint64_t soon = process_clock_ns() + 200 * MS;

	stamps_add_graph(stamps, &(const struct stamps_graph){soon, &exec, 0, one.number, other.number, functions.number, 2});
	finish(one, soon + 1000 * MS + 10000);
	take(look);
	assert_int_equal(times.functions[0].instances, 1);
	finish(other, soon + 1000 * MS + 20000);
	while (process_clock_ns() <= soon)
		usleep(1000);
	take(look);
	assert_int_equal(times.functions[0].instances, 2);
	look_end(look);
}

/* Its kernels are lost, and how busy the GPU was is not known: just for this take. */
static void test_a_graph_that_does_not_tell_its_end(void **state)
{
	enum { KERNELS = 3 };
	static char exec;
	struct look *look = begin_look();

	(void)state;
	run_kernel(0, true);
	take(look);
	assert_true(times.gpus[0].is_time_known);
	run_kernel(0, true);
	stamps_add_graph(stamps, &(const struct stamps_graph){.launched_ns = process_clock_ns(), .exec = &exec, .kernels = KERNELS});
	take(look);
	assert_int_equal(times.gpus[0].lost, KERNELS);
	assert_false(times.gpus[0].is_time_known);
	run_kernel(0, true);
	take(look);
	assert_int_equal(times.gpus[0].lost, 0);
	assert_true(times.gpus[0].is_time_known);
	look_end(look);
}

static uint64_t durations_behind_a_graph(struct look *look, uint64_t stream_of_graph, uint64_t stream_of_kernel)
{
	static char exec;
	uint64_t now = process_clock_ns();

	stamps_add_graph(stamps, &(const struct stamps_graph){.launched_ns = now, .exec = &exec, .stream = stream_of_graph, .kernels = 1});
	stream_of_test = stream_of_kernel;
	run_kernel(20 * MS, true);
	take(look);
	stream_of_test = 0;
	assert_int_equal(times.functions[0].instances, 1);
	return times.functions[0].durations.count;
}

/* Its kernels' times are not known, if it is in their stream, or may be. */
static void test_kernels_behind_a_graph_that_does_not_tell_its_end(void **state)
{
	static char exec;
	struct look *look = begin_look();

	(void)state;
	stamps_add_node(stamps, &(const struct stamps_node){.exec = &exec});
	run_kernel(0, true); /* the clocks are known by it */
	run_kernel(20 * MS, true);
	take(look);
	assert_int_equal(times.functions[0].instances, 2);
	assert_in_range(times.functions[0].durations.count, 1, 2);
	assert_int_equal(durations_behind_a_graph(look, 0x1000, 0x1000), 0);
	assert_int_equal(durations_behind_a_graph(look, 0x1000, 0x1040), 1);
	assert_int_equal(durations_behind_a_graph(look, 0x1000, 0x2000 | STAMPS_STREAM_UNKNOWN), 0);
	look_end(look);
}

/* A hostile program names nodes that no program comes to. */
static void test_nodes_without_an_end(void **state)
{
	static const struct {
		uint64_t first, nodes;
	} graphs[] = {{UINT64_MAX, 0}, {1, UINT32_MAX}, {UINT64_MAX - 1, 1}, {5, UINT64_C(0xffffffff00000000)}};
	static char execs[sizeof graphs / sizeof graphs[0]];
	struct look *look = begin_look();

	(void)state;
	run_kernel(0, true);
	take(look);
	for (size_t i = 0; i < sizeof graphs / sizeof graphs[0]; i++) {
		uint64_t now = process_clock_ns();

		stamps_add_graph(stamps, &(const struct stamps_graph){now, &execs[i], 0, 1, 1, 1, 2});
		struct stamps_record *record = &stamps->records[atomic_load(&stamps->launches) % STAMPS_CELLS];

		atomic_store(&record->function, graphs[i].first);
		atomic_store(&record->nodes, graphs[i].nodes);
		take(look);
		assert_int_equal(times.function_count, 1);
	}
	look_end(look);
}

/* A short kernel was launched long ago, and nobody saw when it ended: it may have been just now. */
static void test_a_program_that_is_nearly_idle(void **state)
{
	struct look *look = begin_look();

	(void)state;
	for (int i = 0; i < 3; i++) {
		uint64_t now = process_clock_ns();

		counts_launch_shared(place);
		struct stamps_cell cell = launch(now);

		usleep(30000);
		atomic_fetch_add(counts_ended(place, COUNTS_PLAIN), 1);
		finish(cell, now + 15000 + 1000 * MS);
		take(look);
		assert_int_equal(times.gpus[0].gaps, 1 << LOOK_CLOCKS);
		assert_false(times.gpus[0].is_time_known);
		assert_int_equal(times.gpus[0].kernels, 1);
		assert_int_equal(times.gpus[0].timed, 1);
		/* Nor are those takes known in which it does nothing: else only these were. */
		take(look);
		assert_false(times.gpus[0].is_time_known);
	}
	/* Once one was seen to end, it is known. */
	run_kernel(0, true);
	take(look);
	run_kernel(0, true);
	usleep(10000);
	take(look);
	assert_int_equal(times.gpus[0].gaps, 0);
	assert_true(times.gpus[0].is_time_known);
	assert_true(times.gpus[0].busy_ns < 1 * MS);
	look_end(look);
}

/* What another look knows of the GPU's clock, this one knows, too. */
static void test_looks_share_clocks(void **state)
{
	struct look *other = begin_look();

	(void)state;
	run_kernel(0, true);
	take(other);
	struct look *look = begin_look();
	uint64_t now = process_clock_ns();

	counts_launch_shared(place);
	struct stamps_cell cell = launch(now);

	usleep(30000);
	atomic_fetch_add(counts_ended(place, COUNTS_PLAIN), 1);
	finish(cell, now + 15000 + 1000 * MS);
	take(look);
	assert_int_equal(times.gpus[0].gaps, 0);
	assert_true(times.gpus[0].is_time_known);
	assert_int_equal(times.gpus[0].timed, 1);
	assert_true(times.gpus[0].busy_ns < 1 * MS);
	look_end(look);
	look_end(other);
}

/* Kernels end, and have no stamps: it takes two looks to be sure. */
static void test_a_profiler(void **state)
{
	struct look *look = begin_look();

	(void)state;
	run_kernel(MS, false);
	run_kernel(MS, false);
	take(look);
	assert_int_equal(times.gpus[0].gaps, 0);
	take(look);
	assert_int_equal(times.gpus[0].gaps, 1 << LOOK_PROFILER);
	assert_false(times.gpus[0].is_time_known);
	/* It has gone. */
	take(look);
	run_kernel(0, true);
	take(look);
	assert_int_equal(times.gpus[0].gaps, 0);
	assert_true(times.gpus[0].is_time_known);
	look_end(look);
}

/* What runs for long is no profiler. */
static void test_a_long_kernel(void **state)
{
	struct look *look = begin_look();

	(void)state;
	counts_launch_shared(place);
	struct stamps_cell cell = launch(process_clock_ns());

	for (int i = 0; i < 3; i++) {
		usleep(2000);
		take(look);
		assert_int_equal(times.gpus[0].gaps, 0);
		assert_true(times.gpus[0].busy_ns > 0);
	}
	atomic_fetch_add(counts_ended(place, COUNTS_PLAIN), 1);
	finish(cell, process_clock_ns() + 1000 * MS);
	take(look);
	assert_int_equal(times.gpus[0].timed, 1);
	take(look);
	assert_int_equal(times.gpus[0].busy_ns, 0);
	look_end(look);
}

static void test_why_nothing_is_known(void **state)
{
	struct look *look = begin_look();

	(void)state;
	stamps_note_gap(stamps, STAMPS_REFUSED);
	counts_note_gap(place, COUNTS_OLDER);
	take(look);
	assert_int_equal(times.gpus[0].gaps, 1 << LOOK_REFUSED | 1 << LOOK_OLDER);
	assert_false(times.gpus[0].is_time_known);
	counts_note_gap_everywhere(&segment, COUNTS_OFF);
	take(look);
	assert_int_equal(times.gpus[0].gaps, 1 << LOOK_REFUSED | 1 << LOOK_OLDER | 1 << LOOK_OFF);
	look_end(look);
}

static void test_the_file_is_closed(void **state)
{
	(void)state;
	close(areas.files[0]);
	struct look *look = begin_look();

	take(look);
	assert_true(times.gpus[0].gaps & 1 << LOOK_CLOSED);
	assert_false(times.gpus[0].is_time_known);
	look_end(look);
	areas.memory[0] = NULL; /* for tear_down */
}

static void test_another_area(void **state)
{
	struct look *look = begin_look();

	(void)state;
	stamps = take_ring(COUNTS_PLACES);
	stamps_begin(stamps, false);
	finish(launch(process_clock_ns()), 1000 * MS + process_clock_ns());
	take(look);
	assert_int_equal(times.gpus[0].timed, 1);
	assert_true(times.gpus[0].is_presence);
	look_end(look);
}

static void test_there_is_no_such_process(void **state)
{
	struct error error;
	pid_t pid = fork();

	(void)state;
	if (pid == 0)
		_exit(0);
	waitpid(pid, NULL, 0);
	assert_null(look_begin(pid, &error));
	assert_true(error.reason[0]);
	look_end(NULL);
}

#define STAMPS_TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STAMPS_TEST(test_nobody_looks),
		STAMPS_TEST(test_a_lease_ends_by_itself),
		STAMPS_TEST(test_a_lease_that_is_none),
		STAMPS_TEST(test_a_shorter_lease_shortens_none),
		STAMPS_TEST(test_a_watcher_that_dies_at_the_wrong_moment),
		STAMPS_TEST(test_a_watcher_that_is_late),
		STAMPS_TEST(test_looking_is_no_edit),
		cmocka_unit_test(test_looking_is_no_edit_in_a_group),
		STAMPS_TEST(test_launched_and_ended),
		STAMPS_TEST(test_half_a_stamp),
		STAMPS_TEST(test_another_kernels_stamp),
		STAMPS_TEST(test_what_is_overwritten_is_lost),
		STAMPS_TEST(test_what_never_ends),
		STAMPS_TEST(test_a_scan_may_stop),
		STAMPS_TEST(test_nodes),
		STAMPS_TEST(test_a_node_that_is_changed),
		STAMPS_TEST(test_the_nodes_of_a_function),
		STAMPS_TEST(test_a_launch_ends_with_its_latest_node),
		STAMPS_TEST(test_a_launch_runs_after_another),
		STAMPS_TEST(test_nodes_without_a_front),
		STAMPS_TEST(test_nodes_with_a_break),
		STAMPS_TEST(test_cells_lie_apart),
		STAMPS_TEST(test_names),
		STAMPS_TEST(test_more_names_than_there_is_room_for),
		STAMPS_TEST(test_long_names),
		STAMPS_TEST(test_looking),
		STAMPS_TEST(test_what_was_before),
		STAMPS_TEST(test_a_graph_that_has_just_been_launched),
		STAMPS_TEST(test_a_graph_that_does_not_tell_its_end),
		STAMPS_TEST(test_kernels_behind_a_graph_that_does_not_tell_its_end),
		STAMPS_TEST(test_nodes_without_an_end),
		STAMPS_TEST(test_a_program_that_is_nearly_idle),
		STAMPS_TEST(test_looks_share_clocks),
		STAMPS_TEST(test_a_profiler),
		STAMPS_TEST(test_a_long_kernel),
		STAMPS_TEST(test_why_nothing_is_known),
		STAMPS_TEST(test_the_file_is_closed),
		STAMPS_TEST(test_another_area),
		STAMPS_TEST(test_there_is_no_such_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
