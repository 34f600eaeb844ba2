/*
 * When kernels were on the GPU: what a watcher estimates (monitor/monitor.h), beside what the kernels themselves saw on
 * %globaltimer. Prints how far they are apart: on the hardware, that calibrates the estimate (monitor/estimate/times.h).
 *
 * gpus: h200 turing blackwell
 */
#include "../cases.h"
#include "base/clock.h"
#include "gpu/qmd.h"
#include "monitor/monitor.h"
#include "state/kernels/area.h"
#include "state/kernels/counts_read.h"
#include "state/kernels/timestamps_read.h"
#include "state/segment/layout.h"
#include "state/segment/events.h"
#include "support/child.h"
#include "support/graph.h"
#include "support/last_kernel.h"
#include "support/subscriber.h"

static struct error error;

#define KERNELS_MAX 2000

static CUmodule module;
static CUfunction last;
static CUdeviceptr looks;

/* When a block, or a kernel, ran, by its own looks. */
struct span {
	uint64_t begin, end;
};

/* What the watcher has seen since the test began. */
static struct seen {
	uint64_t kernels, timed, lost, busy_ns, tpc_ns, span_ns, error_ns;
	uint32_t gaps;
	bool is_known, is_presence;
	bool was_unsure; /* a simulated GPU's clock was not known well */
	bool was_late; /* the lease had ended before a take: this machine was so slow; what was launched meanwhile is lost */
	uint64_t instances[2]; /* of last, nothing or where */
	struct durations durations[2];
} seen;

static struct monitor *look;

static bool is_open;

/* CUDA does not survive a fork: so it is used first when it is needed. */
FIXTURE(open_test)
{
	if (is_open)
		return;
	is_open = true;
	gpu_set_up(NULL);
	gpu_check(cuModuleLoadData(&module, last_ptx));
	gpu_check(cuModuleGetFunction(&last, module, "last"));
	gpu_check(cuMemAlloc_v2(&looks, KERNELS_MAX * gpu.sm_count * sizeof(struct span)));
}

/* --- watching --------------------------------------------------------------------------------------------------- */

static const char *const names[] = {"last", "nothing"};

static void add(const struct monitor_times *times)
{
	const struct monitor_gpu *on = NULL;

	for (unsigned int i = 0; i < times->gpu_count; i++)
		on = gpu.topology && pci_address_equal(times->gpus[i].pci, gpu.topology->pci) ? &times->gpus[i] : on;
	if (!on)
		return;
	/* A simulated GPU is part of a program that may be interrupted for long: then its clock is not known well. */
	uint32_t unsure = gpu_is_simulated() ? 1u << MONITOR_CLOCKS : 0;

	seen.kernels += on->kernels;
	seen.timed += on->timed;
	seen.lost += on->lost;
	seen.busy_ns += on->busy_ns;
	seen.tpc_ns += on->tpc_ns;
	seen.span_ns += on->span_ns;
	seen.error_ns = on->error_ns;
	seen.gaps |= on->gaps & ~unsure;
	seen.was_unsure = seen.was_unsure || (on->gaps & unsure);
	seen.is_known = on->is_time_known || (on->gaps != 0 && on->gaps == unsure);
	seen.is_presence = on->is_presence;
	for (unsigned int i = 0; i < times->function_count; i++) {
		for (unsigned int name = 0; name < 2; name++) {
			if (times->functions[i].name && strcmp(times->functions[i].name, names[name]) == 0) {
				seen.instances[name] += times->functions[i].instances;
				durations_merge(&seen.durations[name], &times->functions[i].durations);
			}
		}
	}
}

static uint64_t taken_at;

static void take(void)
{
	struct monitor_times times;
	uint64_t before_that = taken_at;

	taken_at = process_clock_ns();
	seen.was_late = seen.was_late || taken_at - before_that >= LEASE_NS;
	assert_done(monitor_take(look, &times, NULL, &error));
	add(&times);
}

static void begin(void)
{
	look = monitor_begin(getpid(), NULL, &error);
	if (!look)
		fail_msg("%s", error.reason);
	gpu_launch_empty(&gpu);
	gpu_check(cuCtxSynchronize());
	take();
	if (seen.gaps & 1 << MONITOR_NO_SLOTS)
		gpu_skip("this GPU's launch descriptors have no slot that tells the time");
	memset(&seen, 0, sizeof seen);
}

FIXTURE(end)
{
	monitor_end(look);
	look = NULL;
	memset(&seen, 0, sizeof seen);
}

/* Nothing says that a stamp is visible before a synchronisation ends, so this waits. */
#define PATIENCE_SECONDS 60

static void take_until(uint64_t kernels)
{
	time_t patience = time(NULL) + PATIENCE_SECONDS;

	gpu_check(cuCtxSynchronize());
	take();
	while (seen.timed + seen.lost < kernels && !seen.was_late && time(NULL) < patience)
		take();
}

/* Where nobody had taken anything for so long before it was seen what was recorded. */
static void skip_if_late(void)
{
	if (seen.was_late || process_clock_ns() - taken_at >= LEASE_NS)
		gpu_skip("a step takes longer here than a lease");
}

/* Another thread watches while this one launches. */
static atomic_bool is_watching;

static void *watch(void *data)
{
	while (atomic_load(&is_watching)) {
		take();
		usleep(2000);
	}
	return NULL;
}

/* --- kernels that know when they ran ---------------------------------------------------------------------------- */

static CUdeviceptr looks_of(unsigned int number)
{
	return looks + (CUdeviceptr)number * gpu.sm_count * sizeof(struct span);
}

/* A block for each SM, as kernels are that use the GPU: one alone is told of 0.6 us earlier under MPS (hardware.md). */
static void launch_last(unsigned int number, uint64_t ns)
{
	CUdeviceptr at = looks_of(number);
	void *arguments[] = {&at, &ns};

	gpu_check(cuLaunchKernel(last, gpu.sm_count, 1, 1, 32, 1, 1, 0, NULL, arguments, NULL));
}

static void read_spans(unsigned int kernels, struct span *spans)
{
	size_t bytes = (size_t)kernels * gpu.sm_count * sizeof(struct span);
	struct span *blocks = malloc(bytes);

	assert_non_null(blocks);
	gpu_check(cuMemcpyDtoH_v2(blocks, looks, bytes));
	for (unsigned int i = 0; i < kernels; i++) {
		const struct span *first = &blocks[(size_t)i * gpu.sm_count];

		spans[i] = *first;
		for (const struct span *block = first; block < first + gpu.sm_count; block++) {
			spans[i].begin = block->begin < spans[i].begin ? block->begin : spans[i].begin;
			spans[i].end = block->end > spans[i].end ? block->end : spans[i].end;
		}
	}
	free(blocks);
}

/* Their lengths, as they saw them. */
static uint64_t read_looks(unsigned int kernels, struct durations *own)
{
	static struct span spans[KERNELS_MAX];
	uint64_t sum = 0;

	read_spans(kernels, spans);
	for (unsigned int i = 0; i < kernels; i++) {
		sum += spans[i].end - spans[i].begin;
		durations_add(own, spans[i].end - spans[i].begin);
	}
	return sum;
}

struct load {
	unsigned int kernels;
	uint64_t ns;
	unsigned int in_a_row; /* then the GPU is idle for a while */
};

/* Returns how long the calls took that launch them. */
static uint64_t run(const struct load *load)
{
	uint64_t calls = 0;

	for (unsigned int i = 0; i < load->kernels; i++) {
		uint64_t begin_call = process_clock_ns();

		launch_last(i, load->ns);
		calls += process_clock_ns() - begin_call;
		if (i % load->in_a_row == load->in_a_row - 1) {
			gpu_check(cuCtxSynchronize());
			usleep(200);
		}
	}
	return calls;
}

static double distance(double a, double b)
{
	return a > b ? a - b : b - a;
}

/* Of each change, in ns. A simulated GPU is part of a program that may be interrupted at any moment, and is slow under a
 * sanitizer. Its launches wait for their kernels: so what a call took longer than its kernel, `slack`, is how much later than
 * usual the kernel may have begun; that is 10000 otherwise. */
static double allowed(double slack)
{
	return gpu_is_simulated() ? (slack > 12000 ? slack : 6000) + 2 * (double)seen.error_ns : 2000;
}

/*
 * A launch may be interrupted between the record of its time and the GPU: so a few tries. A simulated kernel may be, too, on a busy
 * machine nearly each one: so many. An estimate that is wrong by itself is wrong in all of them.
 */
static int tries(void)
{
	return gpu_is_simulated() ? 200 : 5;
}

/* Within 1 %, or 2 us for each change from idle to busy. Within 3 % in rows: between two kernels of 10 us the GPU is idle for 1.8
 * us, of which 0.3 us are not the same each time. A simulated launch waits for its kernel: none is in a row. */
static bool is_right(const struct load *load)
{
	struct durations own = {.count = 0};

	memset(&seen, 0, sizeof seen);
	atomic_store(&is_watching, true);
	pthread_t watcher = thread_start(watch, NULL);
	uint64_t calls = run(load);

	atomic_store(&is_watching, false);
	pthread_join(watcher, NULL);
	take_until(load->kernels);
	if (seen.was_late)
		return false;

	double sum = (double)read_looks(load->kernels, &own), changes = load->kernels;

	if (!gpu_is_simulated())
		changes /= load->in_a_row;
	double off = ((double)seen.busy_ns - sum) / changes, most = allowed(((double)calls - sum) / load->kernels);
	double median = (double)durations_median(&seen.durations[0]), expected = (double)durations_median(&own);

	print_message("%u kernels of %llu ns, %u in a row: busy %.0f ns too long for each change (%.2f %%), median %.0f ns, "
	              "their own %.0f ns, clocks within %llu ns, allowed %.0f ns\n",
	              load->kernels, (unsigned long long)load->ns, load->in_a_row, off,
	              100 * ((double)seen.busy_ns - sum) / sum, median, expected, (unsigned long long)seen.error_ns, most);
	assert_int_equal(seen.gaps, 0);
	assert_true(seen.is_known);
	assert_each(seen.kernels, load->kernels, seen.lost, 0, seen.instances[0], load->kernels);
	/* Before the clocks are known well, a duration may be left out. */
	return seen.durations[0].count == load->kernels &&
	       (distance((double)seen.busy_ns, sum) <= sum * (load->in_a_row > 1 ? 0.03 : 0.01) || distance(off, 0) <= most) &&
	       (distance(median, expected) <= expected / 32 || distance(median, expected) <= most);
}

static void fork_while_looked_at(void);

TEST_WITH(no_fixture, NULL, a_child)
{
	child_passes(fork_while_looked_at);
}

TEST(durations)
{
	static const struct load loads[] = {{1000, 10000, 1}, {1000, 10000, 50}, {100, 1000000, 1}, {6, 50000000, 1}};

	begin();
	for (size_t i = 0; i < COUNT_OF(loads); i++) {
		bool right = false;

		ROW("kernels of %llu ns, %u in a row", (unsigned long long)loads[i].ns, loads[i].in_a_row);
		for (int times = 0; times < tries() && !right; times++)
			right = is_right(&loads[i]);
		assert_true(right);
	}
}

/* --- nobody looks ----------------------------------------------------------------------------------------------- */

/* This process's rings; NULL if it has none. */
static const struct timestamps_memory *map_stamps(void)
{
	struct segment segment = gpu_own_segment();
	const struct segment_area *area = &segment.memory->timestamps[0];
	int directory = open("/proc/self/fd", O_RDONLY | O_DIRECTORY);
	const struct timestamps_memory *memory =
		area_map(directory, atomic_load(&area->file), atomic_load(&area->inode), sizeof *memory);

	close(directory);
	segment_close(&segment);
	return memory;
}

/* How many launches have been recorded in all of this process's rings. */
static uint64_t recorded(void)
{
	const struct timestamps_memory *memory = map_stamps();
	uint64_t sum = 0;

	for (unsigned int i = 0; memory && i < COUNTS_PLACES; i++)
		sum += atomic_load(&memory->rings[i].launches);
	if (memory)
		munmap((void *)memory, sizeof *memory);
	return sum;
}

/* Of the process's last launch. */
static struct qmd_grid last_grid(void)
{
	const struct timestamps_memory *memory = map_stamps();
	struct timestamps_event event, last_event = {.launched_ns = 0};

	assert_non_null(memory);
	for (unsigned int i = 0; i < COUNTS_PLACES; i++) {
		uint64_t number = atomic_load(&memory->rings[i].launches);

		if (timestamps_read_launch(&memory->rings[i], number, &event) &&
		    event.launched_ns > last_event.launched_ns)
			last_event = event;
	}
	munmap((void *)memory, sizeof *memory);
	return last_event.grid;
}

static void check_grid(unsigned int x, unsigned int y, unsigned int z, CUlaunchAttribute *attribute)
{
	CUlaunchConfig config = gpu_config(x, 32, NULL);

	config.gridDimY = y;
	config.gridDimZ = z;
	config.attrs = attribute;
	config.numAttrs = attribute != NULL;
	gpu_check(cuLaunchKernelEx(&config, gpu.nothing, NULL, NULL));
	gpu_check(cuCtxSynchronize());
	struct qmd_grid grid = last_grid();

	assert_each(grid.width, x, grid.height, y, grid.depth, z);
}

TEST(grids)
{
	begin();
	check_grid(1, 1, 1, NULL);
	check_grid(100000, 3, 2, NULL);
	check_grid(2, 5, 300, NULL);
}

/* Grids in further fields of the descriptor, and in clusters. */
TEST(grids_that_run_at_once)
{
	CUlaunchAttribute cooperative = {.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value = {.cooperative = 1}};
	CUlaunchAttribute clusters = {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION};

	gpu_need_clusters();
	clusters.value.clusterDim.x = 1;
	clusters.value.clusterDim.y = clusters.value.clusterDim.z = 2;
	begin();
	check_grid(5, 3, 2, &cooperative);
	check_grid(3, 6, 8, &clusters);
}

static void wait_for_the_end_of_the_lease(void)
{
	struct segment segment = gpu_own_segment();

	while (segment_is_watched(&segment))
		usleep(10000);
	segment_close(&segment);
}

TEST(nobody_looks_any_more)
{
	begin();
	uint64_t at_first = recorded();

	gpu_launch_empty(&gpu);
	uint64_t at_second = recorded();

	skip_if_late();
	assert_int_equal(at_second, at_first + 1);
	wait_for_the_end_of_the_lease();
	for (unsigned int i = 0; i < 10; i++)
		gpu_launch_empty(&gpu);
	assert_int_equal(recorded(), at_first + 1);
	take();
	memset(&seen, 0, sizeof seen); /* that one was late */
	gpu_launch_empty(&gpu);
	uint64_t at_last = recorded();

	skip_if_late();
	assert_int_equal(at_last, at_first + 2);
}

/* Who looks at a process does not look at its children. */
static void launch_in_the_child(void)
{
	open_test(NULL);
	for (unsigned int i = 0; i < 10; i++)
		gpu_launch_empty(&gpu);
	gpu_check(cuCtxSynchronize());
	assert_int_equal(recorded(), 0);
	const struct qmd_family *family = qmd_family_for(gpu.topology->compute_major, gpu.topology->compute_minor);

	if (!family || qmd_release_reach(family) == 0)
		return;
	begin();
	launch_last(0, 1000);
	take_until(1);
	if (seen.was_late)
		return;
	assert_int_equal(seen.instances[0], 1);
	assert_int_equal(recorded(), 2);
}

static void fork_while_looked_at(void)
{
	look = monitor_begin(getpid(), NULL, &error);
	assert_non_null(look);
	child_passes(launch_in_the_child);
}

/* --- graphs ----------------------------------------------------------------------------------------------------- */

/* Kernels in a row, each with looks of its own. The last ones but as many others do nothing. */
static CUgraph make_mixed_graph(unsigned int kernels, unsigned int others, uint64_t ns)
{
	CUgraphNode node, previous = NULL;
	CUgraph graph;

	gpu_check(cuGraphCreate(&graph, 0));
	for (unsigned int i = 0; i < kernels; i++) {
		CUdeviceptr at = looks_of(i % KERNELS_MAX);
		void *arguments[] = {&at, &ns};
		bool is_other = i >= kernels - 2 * others && i < kernels - others;
		const CUDA_KERNEL_NODE_PARAMS parameters = {
			.func = is_other ? gpu.nothing : last, .gridDimX = gpu.sm_count, .gridDimY = 1, .gridDimZ = 1,
			.blockDimX = 32, .blockDimY = 1, .blockDimZ = 1, .kernelParams = is_other ? NULL : arguments};

		gpu_check(cuGraphAddKernelNode_v2(&node, graph, &previous, previous != NULL, &parameters));
		previous = node;
	}
	return graph;
}

static CUgraph make_graph(unsigned int kernels, uint64_t ns)
{
	return make_mixed_graph(kernels, 0, ns);
}

#define GRAPH_KERNELS 10
#define GRAPH_NS 200000
#define REPLAYS 20

/* From the first look of its first kernel to the last one of its last. How long each kernel looked at the clock goes to `own`: on a
 * busy machine, simulated ones take longer than they should. */
static double span_of_replay(struct durations *own)
{
	struct span spans[GRAPH_KERNELS];

	read_spans(GRAPH_KERNELS, spans);
	for (unsigned int i = 0; i < GRAPH_KERNELS; i++)
		durations_add(own, spans[i].end - spans[i].begin);
	return (double)(spans[GRAPH_KERNELS - 1].end - spans[0].begin);
}

static bool graph_is_right(CUgraphExec exec)
{
	struct durations own = {.count = 0};
	double expected = 0;

	memset(&seen, 0, sizeof seen);
	for (unsigned int i = 0; i < REPLAYS; i++) {
		graph_replay(exec);
		expected += span_of_replay(&own) / REPLAYS;
		take();
	}
	take_until(1);
	double median = (double)durations_median(&seen.durations[0]);
	double busy = (double)seen.busy_ns / REPLAYS;

	print_message("graph of %d kernels of %d ns: busy %.0f ns each time, by their own looks %.0f, median of a kernel %.0f ns\n",
	              GRAPH_KERNELS, GRAPH_NS, busy, expected, median);
	if (seen.was_late)
		return false;
	assert_each(seen.gaps, 0, seen.kernels, REPLAYS * GRAPH_KERNELS, seen.instances[0], REPLAYS * GRAPH_KERNELS);
	assert_true(seen.durations[0].count >= GRAPH_KERNELS - 1);
	double own_median = (double)durations_median(&own);

	return distance(median, own_median) <= own_median / 10 && distance(busy, expected) <= expected / 100;
}

TEST(graph)
{
	CUgraph graph = make_graph(GRAPH_KERNELS, GRAPH_NS);
	CUgraphExec exec = graph_instantiate(graph);
	bool right = false;

	gpu_check(cuGraphLaunch(exec, NULL)); /* uploaded while nobody looks */
	gpu_check(cuCtxSynchronize());
	begin();
	for (int i = 0; i < tries() && !right; i++)
		right = graph_is_right(exec);
	if (!right && (seen.was_late || seen.was_unsure))
		gpu_skip("the simulated GPU's clock is not known well on a machine as busy as this");
	assert_true(right);
	graph_end(exec, graph);
}

/* The timestamp of the last node; 0 without. */
static uint64_t last_node_stamp(void)
{
	const struct timestamps_memory *memory = map_stamps();
	struct timestamps_node_event node, last_node = {.timestamp_ns = 0};

	assert_non_null(memory);
	for (unsigned int i = 0; i < COUNTS_PLACES; i++) {
		uint64_t number = atomic_load(&memory->rings[i].nodes);

		/* Behind the nodes, it is told how many each function has. */
		while (timestamps_read_node(&memory->rings[i], number, &node) && node.is_break)
			number--;
		if (number > 0)
			last_node = node;
	}
	munmap((void *)memory, sizeof *memory);
	assert_each(last_node.grid.width, gpu.sm_count, last_node.grid.height, 1, last_node.grid.depth, 1);
	return last_node.timestamp_ns;
}

TEST(graph_when_nobody_looks_any_more)
{
	CUgraph graph = make_graph(GRAPH_KERNELS, 1000);
	CUgraphExec exec = graph_instantiate(graph);

	begin();
	graph_replay(exec);
	uint64_t first = last_node_stamp();

	take();
	graph_replay(exec);
	uint64_t stamp = last_node_stamp();

	skip_if_late();
	assert_int_not_equal(first, 0);
	assert_true(stamp > first);
	wait_for_the_end_of_the_lease();
	graph_replay(exec);
	assert_int_equal(last_node_stamp(), stamp);
	graph_end(exec, graph);
}

/* Their handles may be the same, and what is remembered of the ones before is used again. */
TEST(graphs_in_place_of_larger_ones)
{
	enum { MANY = 50 };

	begin();
	for (unsigned int i = 0; i < 2 * MANY; i++) {
		CUgraph graph = make_graph(i < MANY ? GRAPH_KERNELS : 1, 1000);
		CUgraphExec exec = graph_instantiate(graph);

		graph_replay(exec);
		take();
		graph_end(exec, graph);
	}
	take_until(1);
	skip_if_late();
	assert_each(seen.kernels, MANY * (GRAPH_KERNELS + 1), seen.instances[0], MANY * (GRAPH_KERNELS + 1));
}

/* How often nodes that have a cell have others before them that have none. */
static unsigned int count_breaks(void)
{
	const struct timestamps_memory *memory = map_stamps();
	unsigned int count = 0;

	assert_non_null(memory);
	for (unsigned int i = 0; i < COUNTS_PLACES * TIMESTAMPS_NODES; i++) {
		const struct timestamps_node_record *record =
		    &memory->rings[i / TIMESTAMPS_NODES].node_records[i % TIMESTAMPS_NODES];

		count += atomic_load(&record->nodes) == 1 && atomic_load(&record->function) == 0;
	}
	munmap((void *)memory, sizeof *memory);
	return count;
}

static CUgraphExec make_long_graph(unsigned int kernels, unsigned int others)
{
	CUgraph graph = make_mixed_graph(kernels, others, 500);
	CUgraphExec exec = graph_instantiate(graph);

	gpu_check(cuGraphDestroy(graph));
	return exec;
}

static void replay(CUgraphExec exec)
{
	graph_replay(exec);
	take();
}

/* Until its end is known, which takes an upload, and at most a second for it. */
static void replay_until_known(CUgraphExec exec)
{
	time_t patience = time(NULL) + PATIENCE_SECONDS;

	do {
		memset(&seen, 0, sizeof seen);
		replay(exec);
	} while (!(seen.is_known && seen.lost == 0 && seen.instances[0] > 0) && time(NULL) < patience);
	assert_true(seen.is_known);
}

#define LONG (TIMESTAMPS_NODES + 900)
#define LONG_OTHERS 500

static bool all_have_times(void)
{
	return seen.durations[0].count > 0 && seen.durations[1].count >= LONG_OTHERS - 10;
}

/* The numbers are exact in each launch. Those that have no cell at first get times, too, after a few seconds. */
TEST(nodes_take_turns)
{
	CUgraphExec exec = make_long_graph(LONG, LONG_OTHERS);
	uint64_t replays = 0;
	bool was_ever_late = false;

	begin();
	replay_until_known(exec);
	time_t patience = time(NULL) + PATIENCE_SECONDS;

	memset(&seen, 0, sizeof seen);
	while (!all_have_times() && time(NULL) < patience) {
		replay(exec);
		replays++;
		if (seen.was_late) {
			was_ever_late = true;
			replay_until_known(exec);
			memset(&seen, 0, sizeof seen);
			replays = 0;
		}
		assert_true(seen.is_known || replays == 0);
	}
	if (!all_have_times() && was_ever_late && gpu_is_simulated())
		gpu_skip("a launch takes longer here than a lease");
	print_message("%llu launches of %d kernels: %llu have times\n", (unsigned long long)replays, LONG,
	              (unsigned long long)seen.timed);
	assert_each(seen.gaps, 0, seen.lost, 0, seen.kernels, replays * LONG);
	assert_each(seen.instances[0], replays * (LONG - LONG_OTHERS), seen.instances[1], replays * LONG_OTHERS);
	assert_true(all_have_times());
	assert_true(seen.timed < seen.kernels);
	/* What lies between nodes that have a turn is nobody's time. */
	assert_true(count_breaks() > 0);
	assert_true(seen.durations[0].sum_ns + seen.durations[1].sum_ns < seen.busy_ns);
	assert_true(seen.busy_ns > 0 && seen.busy_ns <= seen.span_ns);
	gpu_check(cuGraphExecDestroy(exec));
}

/* Two that are larger together than there are cells. Nothing is taken for busy that has ended. */
TEST(a_graph_loses_its_cells_to_others)
{
	enum { HALF = TIMESTAMPS_NODES / 2 - 1 };
	CUgraphExec execs[] = {make_long_graph(HALF, 0), make_long_graph(HALF, 0), make_long_graph(HALF, 0)};

	struct seen at_once, later;
	time_t patience = time(NULL) + PATIENCE_SECONDS;

	begin();
	do {
		for (int i = 0; i < 3; i++)
			replay_until_known(execs[i]);
		memset(&seen, 0, sizeof seen);
		replay(execs[0]);
		at_once = seen;
		memset(&seen, 0, sizeof seen);
		usleep(20000);
		take();
		later = seen;
	} while ((at_once.was_late || later.was_late) && time(NULL) < patience);
	if ((at_once.was_late || later.was_late) && gpu_is_simulated())
		gpu_skip("a launch takes longer here than a lease");
	/* It has its next turn only after a second. */
	assert_true(at_once.lost == 0 || at_once.lost == HALF);
	assert_true(at_once.is_known || at_once.lost == HALF);
	assert_int_equal(at_once.instances[0], HALF - at_once.lost);
	assert_true(later.is_known);
	assert_int_equal(later.busy_ns, 0);
	replay_until_known(execs[0]);
	assert_int_equal(seen.instances[0], HALF);
	for (int i = 0; i < 3; i++)
		gpu_check(cuGraphExecDestroy(execs[i]));
}

static bool changed_graph_is_right(CUgraphExec exec)
{
	memset(&seen, 0, sizeof seen);
	for (int i = 0; i < 5; i++)
		replay(exec);
	if (!seen.was_late)
		assert_each(seen.instances[0], 5 * (GRAPH_KERNELS - 1), seen.instances[1], 5);
	return !seen.was_late && seen.busy_ns >= UINT64_C(5) * (GRAPH_KERNELS - 1) * GRAPH_NS;
}

/* It counts as what it is now, and the graph's end is still that of the last node. */
TEST(a_node_that_is_changed)
{
	CUgraph graph = make_graph(GRAPH_KERNELS, GRAPH_NS);
	CUgraphExec exec = graph_instantiate(graph);
	CUgraphNode parts[GRAPH_KERNELS];
	size_t count = GRAPH_KERNELS;
	const CUDA_KERNEL_NODE_PARAMS nothing = {.func = gpu.nothing, .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1,
	                                         .blockDimX = 1, .blockDimY = 1, .blockDimZ = 1};

	gpu_check(cuGraphGetNodes(graph, parts, &count));
	begin();
	replay_until_known(exec);
	for (int change = 0; change < 3; change++) {
		bool is_right = false;

		gpu_check(cuGraphExecKernelNodeSetParams_v2(exec, parts[GRAPH_KERNELS / 2], &nothing));
		for (int times = 0; times < tries() && !is_right; times++)
			is_right = changed_graph_is_right(exec);
		assert_true(is_right);
	}
	graph_end(exec, graph);
}

/* A graph keeps the counts of its nodes while it gets their times. */
TEST(counts_stay_right)
{
	CUgraph graph = make_graph(GRAPH_KERNELS, 1000);
	CUgraphExec exec = graph_instantiate(graph);
	struct counts_of_gpu at_first = gpu_kernels(&gpu);

	for (int i = 0; i < 3; i++) {
		begin();
		graph_replay(exec);
		end(NULL);
		wait_for_the_end_of_the_lease();
		graph_replay(exec);
	}
	struct counts_of_gpu now = gpu_kernels(&gpu);

	assert_each(now.gaps, 0, now.launched - at_first.launched, 6 * GRAPH_KERNELS + 3);
	assert_int_equal(now.ended - at_first.ended, 6 * GRAPH_KERNELS + 3);
	graph_end(exec, graph);
}

TEST(a_context_that_ends)
{
	struct gpu_under_test other;

	begin();
	for (int i = 0; i < 3; i++) {
		gpu_open(&other, 0);
		gpu_launch_empty(&other);
		gpu_check(cuCtxSynchronize());
		gpu_close(&other);
		gpu_check(cuCtxSetCurrent(gpu.context));
		take();
	}
	take_until(3);
	skip_if_late();
	assert_each(seen.gaps, 0, seen.instances[1], 3);
}

RUN_TESTS_IN(gpu_load, NULL, open_test, end)
