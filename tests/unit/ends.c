/* How long launches were on the GPU: from rings of stamps that are written here, on clocks that are made up. */
#include "../cases.h"

/* The present, where ends.c asks for it. */
static uint64_t now_of_test;

static uint64_t now(void)
{
	return now_of_test;
}

#define process_clock_ns now
#include "../../src/time/gate/ends.c"
#undef process_clock_ns

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

FIXTURE(set_up)
{
	ring = make_ring(0x3b);
	other = make_ring(0x5e);
	ends_begin();
}

FIXTURE(tear_down)
{
	ends_end();
	free(ring);
	free(other);
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

TEST(a_kernel)
{
	run_first(ring);
	struct ends_time time = run_and_measure(ring, 0, START, START + 5 * US + 100 * US);

	assert_true(time.is_known);
	ASSERT_NEAR(time.duration_ns, 100 * US);
	ASSERT_NEAR(time.used_ns, 100 * US);
}

/* Launched at once: each begins when the one before has ended, though it came long before. */
TEST(kernels_in_a_stream)
{
	struct stamps_cell cells[4];

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

/* Two streams run at the same time, which counts once: 100 and 100 us, of which 60 are the same. */
TEST(overlapping_streams_count_once)
{
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

/* --- odd rings ---------------------------------------------------------------------------------------------------------- */

/* What cannot be is not believed, and nothing was used for longer than it can have been. */
TEST(times_that_cannot_be)
{
	const uint64_t odd[] = {1, AHEAD, AHEAD + START - 50 * MS, AHEAD + START + 50 * MS, UINT64_MAX};

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
TEST(rings_full_of_nonsense)
{
	_Atomic uint64_t *const parts[] = {(_Atomic uint64_t *)ring->cells, (_Atomic uint64_t *)ring->records,
	                                   (_Atomic uint64_t *)ring->node_records};
	const size_t words[] = {sizeof ring->cells / 8, sizeof ring->records / 8, sizeof ring->node_records / 8};
	const unsigned int rounds = 2000;

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

TEST(a_graph)
{
	struct graph_of_test graph = make_graph(ring, EXEC, 1);

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

/* --- what counts once ------------------------------------------------------------------------------------------------- */

TEST(busy_time)
{
	struct busy busy = {.count = 0};

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
TEST(busy_time_is_the_union)
{
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

RUN_TESTS(set_up, tear_down)
