/* How long launches were on the GPU: from rings of stamps that are written here, on clocks that are made up. */
#include <stdint.h>

/* The present, where ends.c asks for it. */
static uint64_t now_of_test;

static uint64_t now(void)
{
	return now_of_test;
}

#define process_clock_ns now
#include "../../src/shim/ends.c"
#undef process_clock_ns

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#define US UINT64_C(1000)
#define MS UINT64_C(1000000)
#define START (UINT64_C(100) * 1000 * MS)

/* So far is the GPU's clock ahead. */
#define AHEAD UINT64_C(1000000000000000)

/* As an estimate is never nearer than this, here. */
#define NEAR (3 * US)

static struct stamps *ring, *other;

static struct stamps *make_ring(unsigned int bus)
{
	struct stamps *made = aligned_alloc(COUNTS_PAGE, sizeof *made);

	assert_non_null(made);
	memset(made, 0, sizeof *made);
	made->pci = (struct pci_address){.bus = (uint8_t)bus};
	stamps_begin(made, true);
	return made;
}

static int set_up(void **state)
{
	(void)state;
	ring = make_ring(0x3b);
	other = make_ring(0x5e);
	ends_begin();
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	ends_end();
	free(ring);
	free(other);
	return 0;
}

/* --- the world -------------------------------------------------------------------------------------------------------- */

static const uint64_t streams[4]; /* as handles are, whose last bits are 0 */

/* The stamp of a kernel that ends then. */
static uint64_t stamp_of(uint64_t end)
{
	return end + times_under_mps.plain.release_ns + AHEAD;
}

static void write_stamp(struct stamps *of, uint64_t at, uint64_t number, uint64_t stamp)
{
	atomic_store(&of->cells[at / sizeof of->cells[0]].number, number);
	atomic_store(&of->cells[at / sizeof of->cells[0]].time, stamp);
}

/* A kernel that is launched then; until it ends, it has no stamp. */
static struct stamps_cell launch(struct stamps *of, unsigned int stream, uint64_t launched)
{
	const struct stamps_launch record = {.launched_ns = launched, .stream = (uintptr_t)&streams[stream], .tpcs = 8};

	return stamps_add_launch(of, &record);
}

static struct stamps_cell run(struct stamps *of, unsigned int stream, uint64_t launched, uint64_t end)
{
	struct stamps_cell cell = launch(of, stream, launched);

	write_stamp(of, cell.at, cell.number, stamp_of(end));
	return cell;
}

/* It is looked at every 2 us. */
static struct ends_time measure(const struct stamps *of, uint64_t number, bool is_graph, uint64_t launched, uint64_t end)
{
	const struct ends_launch ended = {
		.ring = of,
		.number = number,
		.is_graph = is_graph,
		.came = launched - US,
		.unseen = end + 1 * US,
		.seen = end + 3 * US,
	};

	now_of_test = ended.seen;
	return ends_measure(&ended);
}

static struct ends_time run_and_measure(struct stamps *of, unsigned int stream, uint64_t launched, uint64_t end)
{
	struct stamps_cell cell = run(of, stream, launched, end);

	return measure(of, cell.number, false, launched, end);
}

/* The clocks are compared by this one, and its time is what the processor saw. */
static void run_first(struct stamps *of)
{
	for (uint64_t i = 1; i <= 5; i++)
		run_and_measure(of, 3, START - i * MS, START - i * MS + 20 * US);
}

#define ASSERT_NEAR(value, expected) assert_in_range(value, (expected) > NEAR ? (expected) - NEAR : 0, (expected) + NEAR)

/* Nothing else is known than when it came, and when it was seen. */
static void assert_seen(const struct ends_launch *launch)
{
	struct ends_time time = ends_measure(launch);

	assert_false(time.is_known);
	assert_int_equal(time.duration_ns, launch->seen - launch->came);
}

/* --- kernels ---------------------------------------------------------------------------------------------------------- */

static void test_a_kernel(void **state)
{
	(void)state;
	run_first(ring);
	struct ends_time time = run_and_measure(ring, 0, START, START + 5 * US + 100 * US);

	assert_true(time.is_known);
	ASSERT_NEAR(time.duration_ns, 100 * US);
	ASSERT_NEAR(time.used_ns, 100 * US);
}

/* Launched at once: each begins when the one before has ended, though it came long before. */
static void test_kernels_in_a_stream(void **state)
{
	struct stamps_cell cells[4];

	(void)state;
	run_first(ring);
	for (unsigned int i = 0; i < 4; i++)
		cells[i] = run(ring, 0, START + i * US, START + (i + 1) * 100 * US);
	for (unsigned int i = 0; i < 4; i++) {
		struct ends_time time = measure(ring, cells[i].number, false, START + i * US, START + (i + 1) * 100 * US);

		assert_true(time.is_known);
		assert_in_range(time.duration_ns, 92 * US, 102 * US);
		assert_in_range(time.used_ns, 92 * US, 102 * US);
	}
}

/* The next kernel may begin half a microsecond sooner than usual: short ones are rather charged with too much than too little. */
static void test_short_kernels(void **state)
{
	const uint64_t each = 10 * US + times_under_mps.plain.release_ns + times_under_mps.plain.next_ns - 500;
	struct stamps_cell cells[16];

	(void)state;
	run_first(ring);
	for (unsigned int i = 0; i < 16; i++)
		cells[i] = run(ring, 0, START, START + 15 * US + i * each);
	for (unsigned int i = 0; i < 16; i++) {
		struct ends_time time = measure(ring, cells[i].number, false, START, START + 15 * US + i * each);

		assert_true(time.is_known);
		if (i > 0)
			assert_in_range(time.used_ns, 10 * US, 10 * US + 200);
	}
}

/* Two streams run at the same time, which counts once: 100 and 100 us, of which 60 are the same. */
static void test_overlapping_streams_count_once(void **state)
{
	(void)state;
	run_first(ring);
	struct ends_time one = run_and_measure(ring, 0, START, START + 105 * US);
	struct ends_time two = run_and_measure(ring, 1, START + 40 * US, START + 145 * US);
	struct ends_time three = run_and_measure(ring, 2, START + 50 * US, START + 90 * US);

	assert_true(one.is_known && two.is_known && three.is_known);
	ASSERT_NEAR(one.used_ns, 100 * US);
	ASSERT_NEAR(two.duration_ns, 100 * US);
	ASSERT_NEAR(two.used_ns, 40 * US);
	ASSERT_NEAR(three.duration_ns, 35 * US);
	assert_int_equal(three.used_ns, 0);
}

/* And two contexts of one GPU; but not two GPUs. */
static void test_gpus(void **state)
{
	struct stamps *same = make_ring(0x3b);

	(void)state;
	run_first(ring);
	run_first(other);
	run_and_measure(ring, 0, START, START + 105 * US);
	ASSERT_NEAR(run_and_measure(same, 0, START, START + 105 * US).used_ns, 0);
	ASSERT_NEAR(run_and_measure(other, 0, START, START + 105 * US).used_ns, 100 * US);
	free(same);
}

/* Of the first one, nothing else is known than when it was seen; it compares the clocks, though. Who comes back after a
 * pause is slower by some us. */
static void test_clocks_that_were_not_compared(void **state)
{
	uint64_t launched = START + 40 * MS;
	struct stamps_cell cell = run(ring, 0, START, START + 10 * MS);

	(void)state;
	assert_seen(&(const struct ends_launch){ring, cell.number, .came = START, .seen = START + 30 * MS});
	struct ends_time time = run_and_measure(ring, 0, launched, launched + 105 * US);

	assert_true(time.is_known);
	assert_in_range(time.duration_ns, 90 * US, 100 * US);
}

/* Until the clocks are known well, ends should be seen soon; where that does not help, no more. */
static void test_close_looks(void **state)
{
	(void)state;
	assert_true(ends_want_close_looks());
	run_and_measure(ring, 0, START, START + 20 * US);
	assert_false(ends_want_close_looks());
	/* Another GPU's clock is another one. */
	for (unsigned int i = 0; i < IN_VAIN_MAX; i++) {
		struct stamps_cell cell = launch(other, 0, START);

		assert_true(i == 0 || ends_want_close_looks());
		ends_measure(&(const struct ends_launch){other, cell.number, .came = START, .seen = START + MS});
	}
	assert_false(ends_want_close_looks());
	run_and_measure(other, 0, START + MS, START + MS + 20 * US);
	assert_false(ends_want_close_looks());
	ends_end();
	assert_false(ends_want_close_looks());
}

static void test_launches_without_a_ring(void **state)
{
	const struct ends_launch nowhere = {.number = 1, .came = START, .seen = START + MS};
	struct ends_time time = ends_measure(&nowhere);

	(void)state;
	assert_false(time.is_known);
	assert_int_equal(time.duration_ns, MS);
	assert_int_equal(time.used_ns, MS);
}

/* What came to an end is seen, and when it came; the same time counts once all the same. */
static void test_launches_without_a_stamp(void **state)
{
	struct stamps_cell cell = launch(ring, 0, START), later = launch(ring, 0, START);
	struct ends_launch unstamped = {.ring = ring, .number = cell.number, .came = START, .seen = START + MS};

	(void)state;
	struct ends_time time = ends_measure(&unstamped);

	assert_false(time.is_known);
	assert_int_equal(time.duration_ns, MS);
	assert_int_equal(time.used_ns, MS);
	unstamped.number = later.number;
	unstamped.seen += MS;
	time = ends_measure(&unstamped);
	assert_int_equal(time.duration_ns, 2 * MS);
	assert_int_equal(time.used_ns, MS);
	stamps_take_back(ring, launch(ring, 0, START));
	unstamped.number++;
	assert_seen(&unstamped);
}

static void test_no_memory(void **state)
{
	struct stamps_cell cell = run(ring, 0, START, START + MS);

	(void)state;
	ends_end();
	assert_false(measure(ring, cell.number, false, START, START + MS).is_known);
	ends_end();
}

/* --- odd rings ---------------------------------------------------------------------------------------------------------- */

static void test_numbers_that_are_not_there(void **state)
{
	struct ends_launch ended = {.ring = ring, .came = START, .seen = START + MS};

	(void)state;
	run_first(ring);
	const uint64_t numbers[] = {0, 6, STAMPS_CELLS, STAMPS_CELLS + 5, STAMPS_IS_NODE, UINT64_MAX};

	for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
		ended.number = numbers[i];
		assert_seen(&ended);
	}
}

/* Its record and its cell are another's by now. */
static void test_a_launch_of_the_lap_before(void **state)
{
	struct ends_launch ended = {.ring = ring, .came = START, .seen = START + MS};

	(void)state;
	run_first(ring);
	ended.number = run(ring, 0, START, START + 20 * US).number;
	for (unsigned int i = 0; i < STAMPS_CELLS; i++)
		launch(ring, 0, START);
	assert_seen(&ended);
	/* The cell alone. */
	ended.number = run(ring, 0, START, START + 20 * US).number;
	atomic_store(&ring->cells[ended.number % STAMPS_CELLS].number, ended.number + STAMPS_CELLS);
	assert_seen(&ended);
}

/* What cannot be is not believed, and nothing was used for longer than it can have been. */
static void test_times_that_cannot_be(void **state)
{
	const uint64_t odd[] = {1, AHEAD, AHEAD + START - 50 * MS, AHEAD + START + 50 * MS, UINT64_MAX};

	(void)state;
	for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
		ends_begin();
		run_first(ring);
		struct stamps_cell cell = launch(ring, 0, START);

		write_stamp(ring, cell.at, cell.number, odd[i]);
		assert_seen(&(const struct ends_launch){ring, cell.number, .came = START, .seen = START + MS});
	}
	/* Seen before it came. */
	struct stamps_cell cell = run(ring, 0, START, START + MS);
	struct ends_time time = ends_measure(
		&(const struct ends_launch){.ring = ring, .number = cell.number, .came = START + MS, .seen = START});

	assert_int_equal(time.duration_ns, 0);
	assert_int_equal(time.used_ns, 0);
}

static uint64_t seed = 23;

static uint64_t some(uint64_t below)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (seed >> 20) % below;
}

/* A number of a launch or of a node, a time, or anything. */
static uint64_t some_word(void)
{
	const uint64_t words[] = {some(64), some(64) | STAMPS_IS_NODE, AHEAD + START + some(2 * MS), UINT64_MAX - some(2)};

	return words[some(20) == 0 ? 3 : some(3)];
}

/* Whatever stands in the ring: a launch is never longer than it was seen. */
static void test_rings_full_of_nonsense(void **state)
{
	_Atomic uint64_t *const parts[] = {(_Atomic uint64_t *)ring->cells, (_Atomic uint64_t *)ring->records,
	                                   (_Atomic uint64_t *)ring->node_records};
	const size_t words[] = {sizeof ring->cells / 8, sizeof ring->records / 8, sizeof ring->node_records / 8};
	const unsigned int rounds = 2000;

	(void)state;
	run_first(ring);
	for (unsigned int i = 0; i < rounds; i++) {
		uint64_t number = 1 + some(64), came = START + some(MS), seen = came + some(MS);

		for (unsigned int word = 0; word < 3000; word++) {
			unsigned int part = (unsigned int)some(3);
			size_t place = some(some(2) ? 600 : words[part]); /* rather at the beginning, where it is read */

			atomic_store(&parts[part][place], some_word());
		}
		atomic_store(&ring->records[number % STAMPS_CELLS].number, number);
		atomic_store(&ring->records[number % STAMPS_CELLS].kind, some(3));
		atomic_store(&ring->launches, some(200));
		now_of_test = seen;
		const struct ends_launch ended = {ring, number, some(2), came, .unseen = some(2) ? came : 0, .seen = seen};
		struct ends_time time = ends_measure(&ended);

		assert_true(time.duration_ns <= seen - came && time.used_ns <= seen - came);
	}
}

/* --- graphs ------------------------------------------------------------------------------------------------------------- */

#define EXEC ((const void *)0x1000)
#define FUNCTION ((const void *)0x2000)
#define NODES 10

/* A graph: the driver's own kernel in front of ten others, unless `own` is false. */
struct graph_of_test {
	struct stamps *ring;
	const void *exec;
	uint64_t stream, first, last;
};

static struct graph_of_test make_graph(struct stamps *of, const void *exec, unsigned int own)
{
	struct graph_of_test graph = {.ring = of, .exec = exec};

	for (unsigned int i = 0; i < own + NODES; i++) {
		const struct stamps_node node = {.exec = exec, .function = i < own ? NULL : FUNCTION, .tpcs = 8};
		uint64_t number = stamps_add_node(of, &node).number;

		graph.first = i == 0 ? number : graph.first;
		graph.last = number;
	}
	return graph;
}

static uint64_t launch_graph(const struct graph_of_test *graph, uint64_t launched)
{
	const struct stamps_graph record = {launched, graph->exec, graph->stream, graph->first, graph->last, graph->last, NODES};

	stamps_add_graph(graph->ring, &record);
	return atomic_load(&graph->ring->launches);
}

/* Its nodes from `from` on have ended; the first one at `begin`, the last one at `end`. */
static void run_nodes(const struct graph_of_test *graph, uint64_t begin, uint64_t end, unsigned int count)
{
	unsigned int all = (unsigned int)(graph->last - graph->first + 1);

	for (unsigned int i = 0; i < count; i++) {
		struct stamps_cell cell = stamps_node_cell(graph->first + i);

		write_stamp(graph->ring, cell.at, cell.number,
		            begin + (end - begin) * i / (all - 1) + times_under_mps.graph.release_ns + AHEAD);
	}
}

static void run_graph(const struct graph_of_test *graph, uint64_t begin, uint64_t end)
{
	run_nodes(graph, begin, end, (unsigned int)(graph->last - graph->first + 1));
}

static void test_a_graph(void **state)
{
	struct graph_of_test graph = make_graph(ring, EXEC, 1);

	(void)state;
	run_first(ring);
	for (unsigned int i = 0; i < 3; i++) {
		uint64_t launched = START + i * MS, number = launch_graph(&graph, launched);

		run_graph(&graph, launched + 5 * US, launched + 405 * US);
		struct ends_time time = measure(ring, number, true, launched, launched + 405 * US);

		assert_true(time.is_known);
		ASSERT_NEAR(time.duration_ns, 400 * US);
		ASSERT_NEAR(time.used_ns, 400 * US);
	}
}

/* It waited, for a kernel in its stream and then for something else: its begin is known from the driver's own kernel in
 * front. */
static void test_a_graph_that_waits(void **state)
{
	struct graph_of_test graph = make_graph(ring, EXEC, 1);

	(void)state;
	run_first(ring);
	run_and_measure(ring, 0, START, START + 300 * US);
	uint64_t number = launch_graph(&graph, START + 10 * US);

	run_graph(&graph, START + 301 * US, START + 701 * US);
	struct ends_time time = measure(ring, number, true, START + 10 * US, START + 701 * US);

	assert_true(time.is_known);
	ASSERT_NEAR(time.duration_ns, 400 * US);
	ASSERT_NEAR(time.used_ns, 400 * US);
	number = launch_graph(&graph, START + 800 * US);
	run_graph(&graph, START + 1301 * US, START + 1701 * US);
	time = measure(ring, number, true, START + 800 * US, START + 1701 * US);
	assert_true(time.is_known);
	ASSERT_NEAR(time.duration_ns, 400 * US);
	ASSERT_NEAR(time.used_ns, 400 * US);
}

static struct ends_time run_behind(const struct graph_of_test *graph, unsigned int stream, uint64_t begin)
{
	uint64_t number = launch_graph(graph, begin);
	struct stamps_cell cell = run(ring, stream, begin + US, begin + 505 * US);

	run_graph(graph, begin + 5 * US, begin + 405 * US);
	measure(ring, number, true, begin, begin + 405 * US);
	return measure(ring, cell.number, false, begin + US, begin + 505 * US);
}

/* It waits in its stream for the graph; and, in another stream, for none. */
static void test_a_kernel_behind_a_graph(void **state)
{
	struct graph_of_test graph = make_graph(ring, EXEC, 1);

	(void)state;
	graph.stream = (uintptr_t)&streams[0];
	run_first(ring);
	struct ends_time time = run_behind(&graph, 0, START);

	assert_true(time.is_known);
	ASSERT_NEAR(time.duration_ns, 98 * US);
	time = run_behind(&graph, 1, START + 2 * MS);
	assert_true(time.is_known);
	ASSERT_NEAR(time.duration_ns, 500 * US);
	/* A kernel between the two has waited for the graph. */
	uint64_t begin = START + 4 * MS;

	launch_graph(&graph, begin);
	run(ring, 0, begin + US, begin + 450 * US);
	struct stamps_cell cell = run(ring, 0, begin + 2 * US, begin + 505 * US);

	run_graph(&graph, begin + 5 * US, begin + 405 * US);
	measure(ring, cell.number - 1, false, begin + US, begin + 450 * US);
	time = measure(ring, cell.number, false, begin + 2 * US, begin + 505 * US);
	assert_true(time.is_known);
	ASSERT_NEAR(time.duration_ns, 53 * US);
}

/* Not seen is so much of it as waited for; but it was on the GPU no longer than until its end. */
static void test_what_is_used_behind_a_graph(void **state)
{
	struct graph_of_test none = {.ring = ring, .exec = EXEC, .stream = (uintptr_t)&streams[0]};

	(void)state;
	make_graph(ring, EXEC, 1);
	run_first(ring);
	launch_graph(&none, START);
	struct stamps_cell cell = run(ring, 0, START + US, START + 105 * US);
	const struct ends_launch late = {ring, cell.number, false, .came = START, .unseen = START + 104 * US, .seen = START + 2 * MS};

	now_of_test = late.seen;
	struct ends_time time = ends_measure(&late);

	assert_false(time.is_known);
	ASSERT_NEAR(time.duration_ns, 100 * US);
	ASSERT_NEAR(time.used_ns, 100 * US);
}

/* From one kernel to the next in the stream: so many launches in another stream, a kernel that has lost its stamp, or one whose
 * record is gone. */
static void test_what_comes_between(void **state)
{
	struct graph_of_test graph = make_graph(ring, EXEC, 1);
	unsigned int between[] = {0, 30, 31, 40};

	(void)state;
	graph.stream = (uintptr_t)&streams[0];
	run_first(ring);
	run_behind(&graph, 0, START - MS); /* it is learnt */
	for (unsigned int i = 0; i < 4; i++) {
		uint64_t begin = START + i * MS, number = launch_graph(&graph, begin);

		for (unsigned int j = 0; j < between[i]; j++)
			run(ring, 1, begin, begin + 10 * US);
		struct stamps_cell cell = run(ring, 0, begin + US, begin + 505 * US);

		run_graph(&graph, begin + 5 * US, begin + 405 * US);
		measure(ring, number, true, begin, begin + 405 * US);
		assert_int_equal(measure(ring, cell.number, false, begin + US, begin + 505 * US).is_known, between[i] < 32);
	}
	uint64_t begin = START + 5 * MS, number = launch_graph(&graph, begin);

	launch(ring, 0, begin);
	struct stamps_cell cell = run(ring, 0, begin + US, begin + 505 * US);

	run_graph(&graph, begin + 5 * US, begin + 405 * US);
	measure(ring, number, true, begin, begin + 405 * US);
	struct ends_time time = measure(ring, cell.number, false, begin + US, begin + 505 * US);

	assert_true(time.is_known);
	ASSERT_NEAR(time.duration_ns, 98 * US);
	atomic_store(&ring->records[(cell.number - 1) % STAMPS_CELLS].number, 0);
	assert_false(measure(ring, cell.number, false, begin + US, begin + 505 * US).is_known);
}

/* Kernels in other streams wait for what is in the legacy one, and the other way round; or it for nobody. */
static void test_the_legacy_stream(void **state)
{
	struct graph_of_test graph = make_graph(ring, EXEC, 1);

	(void)state;
	run_first(ring);
	graph.stream = STAMPS_STREAM_LEGACY;
	run_behind(&graph, 0, START);
	assert_false(run_behind(&graph, 0, START + 2 * MS).is_known);
}

/* Where the graph's end is not known, the kernel's begin is not. */
static void test_a_kernel_behind_a_graph_whose_end_is_not_known(void **state)
{
	struct graph_of_test graph = make_graph(ring, EXEC, 1), none = {.ring = ring, .exec = (const void *)0x1008};

	(void)state;
	graph.stream = none.stream = (uintptr_t)&streams[0];
	run_first(ring);
	/* Nothing was learnt of it. */
	launch_graph(&graph, START);
	run_graph(&graph, START + 5 * US, START + 405 * US);
	assert_false(run_and_measure(ring, 0, START + US, START + 505 * US).is_known);
	assert_true(run_behind(&graph, 0, START + 2 * MS).is_known);
	/* It was launched again behind the kernel, and has ended again. */
	uint64_t begin = START + 4 * MS;

	launch_graph(&graph, begin);
	struct stamps_cell cell = run(ring, 0, begin + US, begin + 505 * US);

	launch_graph(&graph, begin + 2 * US);
	run_graph(&graph, begin + 507 * US, begin + 907 * US);
	assert_false(measure(ring, cell.number, false, begin + US, begin + 505 * US).is_known);
	/* It does not tell its end. */
	launch_graph(&none, START + 6 * MS);
	assert_false(run_and_measure(ring, 0, START + 6 * MS + US, START + 6 * MS + 505 * US).is_known);
	assert_true(run_and_measure(ring, 0, START + 6 * MS + 2 * US, START + 6 * MS + 705 * US).is_known);
	/* Another one has its cells. */
	none.first = graph.first;
	none.last = graph.last;
	launch_graph(&none, START + 8 * MS);
	assert_false(run_and_measure(ring, 0, START + 8 * MS + US, START + 8 * MS + 505 * US).is_known);
	/* It has other cells than when something was learnt of it, and ran in those until just now. */
	launch_graph(&graph, START + 9 * MS);
	run_graph(&graph, START + 9 * MS, START + 10 * MS + 50 * US);
	graph = make_graph(ring, EXEC, 1);
	graph.stream = none.stream;
	launch_graph(&graph, START + 10 * MS);
	run_graph(&graph, START + 10 * MS + 5 * US, START + 10 * MS + 405 * US);
	assert_false(run_and_measure(ring, 0, START + 10 * MS + US, START + 10 * MS + 505 * US).is_known);
}

/* Without that, and if there are several, it begins when it was launched or the launch before has ended. */
static void test_graphs_without_a_kernel_in_front(void **state)
{
	struct graph_of_test graphs[] = {make_graph(ring, EXEC, 0), make_graph(ring, (const void *)0x1008, 2)};

	(void)state;
	run_first(ring);
	for (unsigned int i = 0; i < 4; i++) {
		uint64_t launched = START + i * 2 * MS, number = launch_graph(&graphs[i % 2], launched);

		run_graph(&graphs[i % 2], launched + 5 * US, launched + 405 * US);
		struct ends_time time = measure(ring, number, true, launched, launched + 405 * US);

		assert_true(time.is_known);
		ASSERT_NEAR(time.used_ns, 400 * US);
		ASSERT_NEAR(time.duration_ns, 400 * US);
	}
}

/* Launched three times at once, and looked at after each: the next one has begun already, and is not taken for this one. */
static void test_a_graph_that_is_launched_again(void **state)
{
	struct graph_of_test graph = make_graph(ring, EXEC, 1);
	uint64_t numbers[3];

	(void)state;
	run_first(ring);
	for (unsigned int i = 0; i < 3; i++)
		numbers[i] = launch_graph(&graph, START + i * US);
	for (uint64_t i = 0; i < 3; i++) {
		uint64_t begin = START + 5 * US + i * 402 * US;

		run_graph(&graph, begin, begin + 400 * US);
		if (i < 2)
			run_nodes(&graph, begin + 402 * US, begin + 802 * US, 3);
		/* It is seen when nodes of the next one have ended, too. */
		const struct ends_launch ended = {ring, numbers[i], true, .came = START + i * US, .unseen = begin + 401 * US,
		                                  .seen = begin + 530 * US};

		now_of_test = ended.seen;
		struct ends_time time = ends_measure(&ended);

		assert_true(time.is_known);
		ASSERT_NEAR(time.duration_ns, 400 * US);
		ASSERT_NEAR(time.used_ns, 400 * US);
	}
}

/* Both are seen when both have ended: what they used is right in sum, and each is as long as the last one was. */
static void test_two_launches_that_are_seen_at_once(void **state)
{
	struct graph_of_test graph = make_graph(ring, EXEC, 1);
	uint64_t first, second;

	(void)state;
	run_first(ring);
	first = launch_graph(&graph, START);
	second = launch_graph(&graph, START + US);
	run_graph(&graph, START + 405 * US, START + 805 * US);
	struct ends_time one = measure(ring, first, true, START, START + 805 * US);
	struct ends_time two = measure(ring, second, true, START + US, START + 805 * US);

	assert_true(one.is_known && two.is_known);
	ASSERT_NEAR(one.duration_ns, 400 * US);
	ASSERT_NEAR(two.duration_ns, 400 * US);
	ASSERT_NEAR(one.used_ns + two.used_ns, 800 * US);
}

/* Graphs alone compare the clocks, too; by the time at which a stamp is read, since it may be a later launch's. */
static void test_graphs_compare_clocks(void **state)
{
	struct graph_of_test graph = make_graph(ring, EXEC, 1);
	struct ends_time time = {.is_known = false};

	(void)state;
	for (uint64_t i = 0; i < 4; i++) {
		uint64_t launched = START + i * MS, number = launch_graph(&graph, launched);

		run_graph(&graph, launched + 5 * US, launched + 405 * US);
		struct ends_launch ended = {.ring = ring, .number = number, .is_graph = true, .came = launched - US,
		                            .unseen = launched + 404 * US, .seen = launched + 405 * US};

		now_of_test = launched + 408 * US;
		time = ends_measure(&ended);
	}
	assert_true(time.is_known);
	ASSERT_NEAR(time.duration_ns, 400 * US);
	ASSERT_NEAR(time.used_ns, 400 * US);
	/* The stamps are those of the next launch, which ended after this one was seen. */
	uint64_t number = launch_graph(&graph, START + 5 * MS);
	const struct ends_launch ended = {ring, number, true, .came = START + 5 * MS, .seen = START + 5 * MS + 410 * US};
	struct clock_offset offset;

	launch_graph(&graph, START + 5 * MS + US);
	run_graph(&graph, START + 5 * MS + 407 * US, START + 5 * MS + 807 * US);
	now_of_test = START + 5 * MS + 810 * US;
	ends_measure(&ended);
	assert_true(times_clock(&known->gpus[0].times, START + 4 * MS, &offset));
	assert_in_range(offset.offset, AHEAD - 3 * US, AHEAD + 3 * US);
}

/* Nobody took longer than it was seen, whatever the next launch took. */
static void test_the_next_launch_is_longer(void **state)
{
	struct graph_of_test graph = make_graph(ring, EXEC, 1);
	uint64_t number = launch_graph(&graph, START);

	(void)state;
	run_first(ring);
	launch_graph(&graph, START + US);
	run_graph(&graph, START + 107 * US, START + 507 * US);
	now_of_test = START + 510 * US;
	struct ends_time time = ends_measure(&(const struct ends_launch){ring, number, true, .came = START, .seen = START + 107 * US});

	assert_true(time.is_known);
	ASSERT_NEAR(time.duration_ns, 107 * US);
	ASSERT_NEAR(time.used_ns, 100 * US);
}

/* A launch has its record when its call ends; until then, its stamps may be taken for those of the one before. */
static void test_the_next_launch_has_no_record_yet(void **state)
{
	struct graph_of_test graph = make_graph(ring, EXEC, 1);
	uint64_t number = launch_graph(&graph, START);

	(void)state;
	run_first(ring);
	run_graph(&graph, START + 150 * US, START + 250 * US);
	now_of_test = START + 255 * US;
	struct ends_time time = ends_measure(&(const struct ends_launch){ring, number, true, .came = START, .seen = START + 107 * US});

	assert_true(time.is_known);
	ASSERT_NEAR(time.duration_ns, 100 * US);
	ASSERT_NEAR(time.used_ns, 100 * US);
}

/* Ten one after the other were seen in time, and are looked at when all have ended: each used its own time. */
static void test_launches_that_are_looked_at_late(void **state)
{
	struct graph_of_test graph = make_graph(ring, EXEC, 1);
	uint64_t first = 0, used_ns = 0;

	(void)state;
	run_first(ring);
	for (uint64_t i = 0; i < 10; i++) {
		uint64_t number = launch_graph(&graph, START + i * 200 * US);

		first = first ? first : number;
		run_graph(&graph, START + i * 200 * US + 5 * US, START + i * 200 * US + 105 * US);
	}
	now_of_test = START + 10 * MS;
	for (uint64_t i = 0; i < 10; i++) {
		uint64_t launched = START + i * 200 * US;
		const struct ends_launch ended = {ring, first + i, true, .came = launched, .seen = launched + 107 * US};
		struct ends_time time = ends_measure(&ended);

		assert_true(time.is_known);
		ASSERT_NEAR(time.duration_ns, 100 * US);
		used_ns += time.used_ns;
	}
	assert_in_range(used_ns, 970 * US, 1030 * US);
}

/* One that may have waited is as long as the last one whose begin was known. */
static void test_a_graph_that_waits_and_is_launched_again(void **state)
{
	struct graph_of_test graph = make_graph(ring, EXEC, 1);
	uint64_t numbers[2], number = launch_graph(&graph, START);

	(void)state;
	run_first(ring);
	run_graph(&graph, START + 5 * US, START + 405 * US);
	measure(ring, number, true, START, START + 405 * US);
	/* It begins after a millisecond, for 300 us; and the one behind it has begun when it is looked at. That one takes 600 us,
	 * which is known from its begin, and so does not count as waiting. */
	numbers[0] = launch_graph(&graph, START + MS);
	numbers[1] = launch_graph(&graph, START + MS + US);
	run_graph(&graph, START + 2 * MS, START + 2 * MS + 300 * US);
	run_nodes(&graph, START + 2 * MS + 302 * US, START + 2 * MS + 902 * US, 3);
	struct ends_time one = measure(ring, numbers[0], true, START + MS, START + 2 * MS + 430 * US);

	assert_true(one.is_known);
	ASSERT_NEAR(one.duration_ns, 400 * US);
	run_graph(&graph, START + 2 * MS + 302 * US, START + 2 * MS + 902 * US);
	launch_graph(&graph, START + MS + 2 * US);
	run_nodes(&graph, START + 2 * MS + 904 * US, START + 2 * MS + 1504 * US, 3);
	struct ends_time two = measure(ring, numbers[1], true, START + MS + US, START + 2 * MS + 1040 * US);

	assert_true(two.is_known);
	ASSERT_NEAR(two.duration_ns, 600 * US);
	/* Which is what the next one is that may have waited. */
	numbers[0] = launch_graph(&graph, START + 5 * MS);
	launch_graph(&graph, START + 5 * MS + US);
	run_graph(&graph, START + 7 * MS, START + 7 * MS + 600 * US);
	run_nodes(&graph, START + 7 * MS + 602 * US, START + 7 * MS + 1202 * US, 3);
	ASSERT_NEAR(measure(ring, numbers[0], true, START + 5 * MS, START + 7 * MS + 730 * US).duration_ns, 600 * US);
}

/* Two contexts call their instances the same. */
static void test_graphs_of_two_rings(void **state)
{
	struct stamps *const rings[] = {ring, other};

	(void)state;
	for (uint64_t i = 0; i < 2; i++) {
		struct graph_of_test graph = make_graph(rings[i], EXEC, 0);
		uint64_t launched = START + i * 50 * US;

		run_first(rings[i]);
		uint64_t number = launch_graph(&graph, launched);

		run_graph(&graph, launched + 5 * US, launched + 405 * US);
		struct ends_time time = measure(rings[i], number, true, launched, launched + 405 * US);

		assert_true(time.is_known);
		ASSERT_NEAR(time.duration_ns, 400 * US);
	}
}

/* Nodes that have no cell, that belong to another instance by now, or never ran. */
static void test_graphs_whose_end_is_not_known(void **state)
{
	struct graph_of_test graph = make_graph(ring, EXEC, 1), none = {.ring = ring, .exec = EXEC},
	                     backwards = {.ring = ring, .exec = EXEC, .first = 9, .last = 3},
	                     endless = {.ring = ring, .exec = EXEC, .first = 1, .last = STAMPS_IS_NODE - 1},
	                     others = {.ring = ring, .exec = (const void *)0x3000, .first = graph.first, .last = graph.last};
	const struct graph_of_test *const odd[] = {&graph, &none, &backwards, &endless, &others};

	(void)state;
	run_first(ring);
	for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
		uint64_t number = launch_graph(odd[i], START);

		assert_seen(&(const struct ends_launch){ring, number, true, .came = START, .seen = START + MS});
	}
	/* A kernel is no graph, and a graph no kernel. */
	uint64_t number = run(ring, 0, START, START + 100 * US).number;

	assert_seen(&(const struct ends_launch){ring, number, true, .came = START, .seen = START + MS});
	number = launch_graph(&graph, START);
	assert_seen(&(const struct ends_launch){.ring = ring, .number = number, .came = START, .seen = START + MS});
}

/* More than are remembered. */
static void test_many_graphs(void **state)
{
	(void)state;
	run_first(ring);
	for (uint64_t i = 0; i < 3 * GRAPHS; i++) {
		uintptr_t exec = 0x1000 + 8 * (i % (GRAPHS + 1));
		struct graph_of_test graph = make_graph(ring, (const void *)exec, 1);
		uint64_t launched = START + i * MS, number = launch_graph(&graph, launched);

		run_graph(&graph, launched + 5 * US, launched + 405 * US);
		struct ends_time time = measure(ring, number, true, launched, launched + 405 * US);

		assert_true(time.is_known);
		ASSERT_NEAR(time.duration_ns, 400 * US);
	}
}

/* --- what counts once ------------------------------------------------------------------------------------------------- */

static void test_busy_time(void **state)
{
	struct busy busy = {.count = 0};

	(void)state;
	assert_int_equal(busy_add(&busy, 10, 20), 10);
	assert_int_equal(busy_add(&busy, 30, 40), 10);
	assert_int_equal(busy_add(&busy, 12, 18), 0);
	assert_int_equal(busy_add(&busy, 15, 35), 10); /* between them */
	assert_int_equal(busy.count, 1);
	assert_int_equal(busy_add(&busy, 40, 50), 10); /* it touches */
	assert_int_equal(busy.count, 1);
	assert_int_equal(busy_add(&busy, 0, 5), 5); /* before them */
	assert_int_equal(busy_add(&busy, 0, 100), 55);
	assert_int_equal(busy_add(&busy, 7, 7), 0);
	assert_int_equal(busy_add(&busy, 9, 3), 0);
	assert_int_equal(busy.count, 1);
}

/* In any order: as many as of 400 points are covered. */
static void test_busy_time_is_the_union(void **state)
{
	(void)state;
	for (unsigned int round = 0; round < 300; round++) {
		struct busy busy = {.count = 0};
		bool covered[400] = {false};

		for (unsigned int i = 0; i < BUSY_STRETCHES; i++) {
			uint64_t begin = some(350), end = begin + some(50), more = 0;

			for (uint64_t at = begin; at < end; at++) {
				more += !covered[at];
				covered[at] = true;
			}
			assert_int_equal(busy_add(&busy, begin, end), more);
		}
	}
}

/* The oldest ones are forgotten, and then count again: too much, never too little. */
static void test_busy_time_is_bounded(void **state)
{
	struct busy busy = {.count = 0};

	(void)state;
	for (uint64_t i = 0; i < 2 * BUSY_STRETCHES; i++)
		assert_int_equal(busy_add(&busy, 10 * i, 10 * i + 5), 5);
	assert_int_equal(busy.count, BUSY_STRETCHES);
	for (uint64_t i = BUSY_STRETCHES; i < 2 * BUSY_STRETCHES; i++)
		assert_int_equal(busy_add(&busy, 10 * i, 10 * i + 5), 0);
	assert_int_equal(busy_add(&busy, 0, 5), 5);
	/* That was the oldest one, though it came last. */
	assert_int_equal(busy_add(&busy, 5000, 5005), 5);
	assert_int_equal(busy_add(&busy, 5000, 5005), 0);
	assert_int_equal(busy_add(&busy, 10 * BUSY_STRETCHES + 10, 10 * BUSY_STRETCHES + 15), 0);
	assert_int_equal(busy_add(&busy, 0, 5), 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_a_kernel, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_kernels_in_a_stream, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_short_kernels, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_overlapping_streams_count_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_gpus, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_clocks_that_were_not_compared, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_close_looks, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_launches_without_a_ring, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_launches_without_a_stamp, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_no_memory, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_numbers_that_are_not_there, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_launch_of_the_lap_before, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_times_that_cannot_be, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_rings_full_of_nonsense, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_graph, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_graph_that_waits, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_kernel_behind_a_graph, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_what_is_used_behind_a_graph, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_what_comes_between, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_the_legacy_stream, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_kernel_behind_a_graph_whose_end_is_not_known, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_graphs_without_a_kernel_in_front, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_graph_that_is_launched_again, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_two_launches_that_are_seen_at_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_graphs_compare_clocks, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_the_next_launch_is_longer, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_the_next_launch_has_no_record_yet, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_launches_that_are_looked_at_late, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_graph_that_waits_and_is_launched_again, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_graphs_of_two_rings, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_graphs_whose_end_is_not_known, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_many_graphs, set_up, tear_down),
		cmocka_unit_test(test_busy_time),
		cmocka_unit_test(test_busy_time_is_the_union),
		cmocka_unit_test(test_busy_time_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
