/*
 * A mixed load for SOAK_SECONDS: plain launches, clusters, cooperative grids and graphs, from several threads on one or two GPUs,
 * while their partitions change some thousand times a second and editors are killed in the middle of an edit.
 *
 * Nothing hangs, nothing fails, and every kernel runs inside a partition that was in force during its launch, that is, between two
 * reads of the segment's number. For launches that are widened, see support/room.h. In between, workers launch bursts that nobody
 * waits for, so that many kernels are counted (state/kernels/counts.h). In the end none is lost: as many were launched as the workers
 * say, and all of them have ended, as the GPU says.
 *
 * Four kinds of processes: the test itself, which watches; the load, with the one that changes partitions among its threads; the
 * killer; and the editors that it kills.
 *
 * gpus: h200-x2 turing blackwell
 * limit: 900
 */
#include "../cases.h"
#include "base/shared_file.h"
#include "state/kernels/counts_read.h"
#include "state/segment/edit.h"
#include "state/segment/find.h"
#include "state/segment/layout.h"
#include "support/child.h"
#include "support/gpu.h"
#include "support/room.h"

#define PLAN_GPUS 2
#define WORKERS_PER_GPU 4
#define WORKERS_MAX (PLAN_GPUS * WORKERS_PER_GPU)
#define NODES 4        /* of a graph */
#define PORTABLE_CLUSTER 8
#define BLOCKS_MAX 1200
#define PATIENCE 60    /* seconds without a finished kernel after which a worker counts as hung */
#define CHANGE_PAUSE_US 1000
#define BURST 500      /* kernels, or nodes */
#define EDITS_MAX 50   /* by an editor, before it waits to be killed */
#define EDITOR_LIFE_US 200
#define KILL_PAUSE_US 3000

static unsigned int soak_seconds(void)
{
	const char *text = getenv("SOAK_SECONDS");

	return text ? (unsigned int)atoi(text) : 2;
}

/* --- the plan ---------------------------------------------------------------------------------------------------- */

/*
 * The contents of a revision of the segment follow from its number, without the times that a watcher raised it
 * (state/segment/lease.h). So the revisions that were in force during a launch say where it may have run, and no history is needed.
 * Every editor must follow it.
 */
struct plan {
	unsigned int gpu_count; /* they are changed in turn */
	struct topology gpus[PLAN_GPUS];
	uint64_t start; /* the last revision before the plan; in it, all GPUs are whole */
};

/* splitmix64 */
static uint64_t plan_random(uint64_t *state)
{
	uint64_t bits = *state += UINT64_C(0x9e3779b97f4a7c15);

	bits = (bits ^ bits >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	bits = (bits ^ bits >> 27) * UINT64_C(0x94d049bb133111eb);
	return bits ^ bits >> 31;
}

/* All TPCs, or half of them, a quarter, and so on down to single ones. */
static struct tpcset random_set(const struct topology *gpu, uint64_t number)
{
	struct tpcset all = topology_all(gpu), set = all;
	uint64_t state = number;
	unsigned int halvings = (unsigned int)(plan_random(&state) % 7);

	for (unsigned int i = 0; i < halvings; i++) {
		for (unsigned int word = 0; word < TPCSET_WORDS; word++)
			set.words[word] &= plan_random(&state);
	}
	return tpcset_is_empty(&set) ? all : set;
}

/* The partition on a GPU in revision `number`. Revision n changes GPU n % gpu_count. */
static struct tpcset plan_set(const struct plan *plan, unsigned int gpu, uint64_t number)
{
	while (number > plan->start && number % plan->gpu_count != gpu)
		number--;
	return number > plan->start ? random_set(&plan->gpus[gpu], number) : topology_all(&plan->gpus[gpu]);
}

/* The number of the revision in force: of none that is later, and of none that is earlier. */
static uint64_t plan_first(const struct segment *segment)
{
	uint64_t number = segment_revision_number(segment);

	return number - segment_raised(segment);
}

static uint64_t plan_last(const struct segment *segment)
{
	uint64_t raised = segment_raised(segment);

	return segment_revision_number(segment) - raised;
}

/* Puts the next revision in force. The number must not change before the edit. So we take the lock that segment_change takes; it
 * belongs to the same file description, so segment_change does not wait. */
static int plan_edit(const struct plan *plan, struct segment *segment, struct error *error)
{
	if (shared_file_lock(segment->file, NULL, error) < 0)
		return -1;
	uint64_t next = plan_last(segment) + 1;
	unsigned int gpu = (unsigned int)(next % plan->gpu_count);
	const struct segment_partition partition = {.pci = plan->gpus[gpu].pci, .set = plan_set(plan, gpu, next)};

	return segment_change(segment, &(struct segment_revision){.count = 1, .partitions[0] = partition}, NULL, error);
}

/* --- what the processes share ------------------------------------------------------------------------------------ */

enum state {
	STARTING,
	RUNNING, /* the plan is made, and editors may follow it */
	OVER
};

static struct shared {
	_Atomic int state;
	struct plan plan;
	unsigned int worker_count;
	_Atomic uint64_t kernels[WORKERS_MAX]; /* of each worker: finished and checked */
	_Atomic uint64_t launched[PLAN_GPUS];  /* by the workers */
	_Atomic uint64_t graphs;               /* instantiated, or updated */
	_Atomic uint64_t changes;              /* by the load's own thread */
	_Atomic uint64_t edits;                /* by editors */
	_Atomic uint64_t killed;
	_Atomic uint64_t failed_editors;
	struct segment_counters counters; /* at the end */
	struct counts_of_gpu counts[PLAN_GPUS];
} *shared;

/* --- a worker ---------------------------------------------------------------------------------------------------- */

struct graph {
	CUgraphExec exec; /* NULL where there is none yet */
	CUgraph made_of;  /* NULL if it was destroyed at once */
	struct shape shapes[NODES];
	unsigned int disabled; /* how many nodes do not run */
	bool was_launched;
};

struct worker {
	unsigned int number;
	unsigned int gpu_number;
	const struct gpu_under_test *gpu;
	const struct segment *segment;
	CUstream stream;
	CUdeviceptr outputs[NODES];
	struct graph graph;
	uint64_t random;
};

static unsigned int random_below(struct worker *worker, unsigned int limit)
{
	return (unsigned int)(plan_random(&worker->random) % limit);
}

static unsigned int random_blocks(struct worker *worker)
{
	unsigned int most = 4 * worker->gpu->sm_count;

	return 1 + random_below(worker, most < BLOCKS_MAX ? most : BLOCKS_MAX);
}

/* Before Hopper there are no clusters, and a descriptor does not say that a launch is cooperative. The largest virtual GPC holds a
 * cluster of 16 on every Hopper and Blackwell that is known. */
static struct shape random_shape(struct worker *worker)
{
	struct shape shape = {.blocks = random_blocks(worker), .threads = GPU_THREADS};
	unsigned int kind = worker->gpu->topology->compute_major < 9 ? 0 : random_below(worker, 4);

	if (kind == 1) {
		shape.cluster = 2u << random_below(worker, 4);
		shape.blocks = shape.cluster * (1 + shape.blocks / 2 / shape.cluster);
	} else if (kind == 2) {
		shape.is_cooperative = true;
		shape.threads = GPU_COOPERATIVE_THREADS;
		shape.blocks_per_sm = gpu_blocks_per_sm(worker->gpu);
	}
	return shape;
}

static void clear(const struct worker *worker, unsigned int output)
{
	static const uint32_t no_sms[BLOCKS_MAX] = {[0 ... BLOCKS_MAX - 1] = UINT32_MAX};

	gpu_check(cuMemcpyHtoDAsync_v2(worker->outputs[output], no_sms, sizeof no_sms, worker->stream));
}

/* While the stream is captured, this adds a node. */
static void launch(struct worker *worker, const struct shape *shape, unsigned int output)
{
	gpu_check(shape_launch(worker->gpu, shape, worker->stream, worker->outputs[output]));
}

/* --- checking ---------------------------------------------------------------------------------------------------- */

/* The revisions that may have been in force. */
struct span {
	uint64_t first;
	uint64_t last;
};

static _Noreturn void report(const struct worker *worker, const struct shape *shape, const struct tpcset *ran, struct span span)
{
	struct tpcset last = plan_set(&shared->plan, worker->gpu_number, span.last);
	char ran_text[TPCSET_TEXT], last_text[TPCSET_TEXT];

	fail_msg("GPU %u: a kernel of %u blocks (clusters of %u%s) ran on TPCs %s, outside what the revisions %llu to "
	         "%llu allow; the last is %s",
	         worker->gpu_number, shape->blocks, shape->cluster, shape->is_cooperative ? ", cooperative" : "",
	         tpcset_format_list(ran, ran_text), (unsigned long long)span.first, (unsigned long long)span.last,
	         tpcset_format_list(&last, last_text));
	abort();
}

static void check_place(const struct worker *worker, const struct shape *shape, const struct tpcset *ran, struct span span)
{
	const struct topology *gpu = worker->gpu->topology;
	bool inside = false;

	for (uint64_t number = span.first; number <= span.last && !inside; number++) {
		struct tpcset set = room_for(gpu, shape, plan_set(&shared->plan, worker->gpu_number, number));

		inside = tpcset_is_subset(ran, &set);
	}
	if (!inside)
		report(worker, shape, ran, span);
}

/* Whether the kernel ran. If it did, checks that all its blocks ran, and where they may. */
static bool check_output(const struct worker *worker, const struct shape *shape, unsigned int output, struct span span)
{
	uint32_t sms[BLOCKS_MAX];
	struct tpcset ran = {{0}};
	unsigned int missing = 0;

	gpu_check(cuMemcpyDtoHAsync_v2(sms, worker->outputs[output], shape->blocks * sizeof *sms, worker->stream));
	gpu_check(cuStreamSynchronize(worker->stream));
	for (unsigned int block = 0; block < shape->blocks; block++) {
		missing += sms[block] == UINT32_MAX;
		tpcset_add(&ran, sms[block] / worker->gpu->topology->sms_per_tpc);
	}
	if (missing == shape->blocks)
		return false;
	assert_int_equal(missing, 0);
	check_place(worker, shape, &ran, span);
	shared->kernels[worker->number]++;
	return true;
}

static void note_launches(const struct worker *worker, uint64_t kernels)
{
	shared->launched[worker->gpu_number] += kernels;
}

static void launch_once(struct worker *worker)
{
	struct shape shape = random_shape(worker);
	struct span span;

	clear(worker, 0);
	span.first = plan_first(worker->segment);
	launch(worker, &shape, 0);
	note_launches(worker, 1);
	span.last = plan_last(worker->segment);
	assert_true(check_output(worker, &shape, 0, span));
}

static void launch_burst(struct worker *worker)
{
	for (unsigned int i = 0; i < BURST; i++)
		gpu_check(cuLaunchKernel(worker->gpu->nothing, 1, 1, 1, 1, 1, 1, 0, worker->stream, NULL, NULL));
	note_launches(worker, BURST);
}

/* --- graphs ------------------------------------------------------------------------------------------------------ */

static CUgraph capture(struct worker *worker, const struct shape *shapes)
{
	CUgraph graph;

	gpu_check(cuStreamBeginCapture_v2(worker->stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	for (unsigned int node = 0; node < NODES; node++)
		launch(worker, &shapes[node], node);
	gpu_check(cuStreamEndCapture(worker->stream, &graph));
	return graph;
}

static void destroy_graph(struct worker *worker)
{
	struct graph *graph = &worker->graph;

	if (graph->exec)
		gpu_check(cuGraphExecDestroy(graph->exec));
	if (graph->made_of)
		gpu_check(cuGraphDestroy(graph->made_of));
	memset(graph, 0, sizeof *graph);
}

static void make_graph(struct worker *worker)
{
	struct graph *graph = &worker->graph;

	destroy_graph(worker);
	for (unsigned int node = 0; node < NODES; node++)
		graph->shapes[node] = random_shape(worker);
	graph->made_of = capture(worker, graph->shapes);
	if (random_below(worker, 2)) { /* as the only node of another one */
		CUgraph child = graph->made_of;
		CUgraphNode node;

		gpu_check(cuGraphCreate(&graph->made_of, 0));
		gpu_check(cuGraphAddChildGraphNode(&node, graph->made_of, NULL, 0, child));
		gpu_check(cuGraphDestroy(child));
	}
	gpu_check(cuGraphInstantiateWithFlags(&graph->exec, graph->made_of, 0));
	if (random_below(worker, 2)) {
		gpu_check(cuGraphDestroy(graph->made_of));
		graph->made_of = NULL;
	}
	shared->graphs++;
}

/* Updates the numbers of blocks from another graph. That has no child graph, so it does not fit instances with one. */
static void update_graph(struct worker *worker)
{
	struct graph *graph = &worker->graph;
	CUgraphExecUpdateResultInfo info;
	struct shape shapes[NODES];
	CUgraph other;

	for (unsigned int node = 0; node < NODES; node++) {
		unsigned int step = graph->shapes[node].cluster ? graph->shapes[node].cluster : 1;

		shapes[node] = graph->shapes[node];
		shapes[node].blocks = step * (1 + random_blocks(worker) / 2 / step);
	}
	other = capture(worker, shapes);
	CUresult result = cuGraphExecUpdate_v2(graph->exec, other, &info);

	gpu_check(cuGraphDestroy(other));
	shared->graphs++;
	/* A failing update may leave some nodes updated (hardware.md). */
	if (result == CUDA_SUCCESS)
		memcpy(graph->shapes, shapes, sizeof shapes);
	else
		make_graph(worker);
}

/* Disables one kernel node, or enables it again, if the instance's graph still exists. Not before the first launch:
 * the driver could lose the node for good, also without nvtaskset (hardware.md). */
static void disable_node(struct worker *worker)
{
	struct graph *graph = &worker->graph;
	CUgraphNode nodes[NODES];
	size_t count = NODES;
	int type;

	if (!graph->made_of || !graph->was_launched)
		return;
	/* For a cluster that is not portable, the driver refuses. For a cooperative node it accepts, but the graph's
	 * next launch fails (hardware.md). */
	if (graph->shapes[0].cluster > PORTABLE_CLUSTER || graph->shapes[0].is_cooperative)
		return;
	gpu_check(cuGraphGetNodes(graph->made_of, nodes, &count));
	gpu_check(cuGraphNodeGetType(nodes[0], &type));
	if (type == CU_GRAPH_NODE_TYPE_KERNEL) {
		CUresult result = cuGraphNodeSetEnabled(graph->exec, nodes[0], graph->disabled);

		/* The driver returns an error for a cluster that is not portable, although it disables the node. */
		assert_true(result == CUDA_SUCCESS || result == CUDA_ERROR_INVALID_CLUSTER_SIZE);
		graph->disabled = !graph->disabled;
	}
}

static void launch_graph(struct worker *worker)
{
	struct graph *graph = &worker->graph;
	unsigned int ran = 0;
	struct span span;

	for (unsigned int node = 0; node < NODES; node++)
		clear(worker, node);
	span.first = plan_first(worker->segment);
	gpu_check(cuGraphLaunch(graph->exec, worker->stream));
	note_launches(worker, NODES - graph->disabled);
	graph->was_launched = true;
	span.last = plan_last(worker->segment);
	for (unsigned int node = 0; node < NODES; node++)
		ran += check_output(worker, &graph->shapes[node], node, span);
	if (ran != NODES - graph->disabled)
		fail_msg("a graph whose CUgraph is %s ran %u of %d nodes, of which %u are disabled",
		         graph->made_of ? "there" : "gone", ran, NODES, graph->disabled);
}

static void launch_graphs(struct worker *worker)
{
	const struct graph *graph = &worker->graph;
	unsigned int launches = graph->was_launched ? BURST / NODES : 0;

	for (unsigned int i = 0; i < launches; i++)
		gpu_check(cuGraphLaunch(graph->exec, worker->stream));
	note_launches(worker, launches * (NODES - graph->disabled));
}

/* --- the load ---------------------------------------------------------------------------------------------------- */

static void do_something(struct worker *worker)
{
	unsigned int choice = random_below(worker, 100);

	if (choice < 40)
		launch_once(worker);
	else if (choice < 74)
		launch_graph(worker);
	else if (choice < 88)
		launch_burst(worker);
	else if (choice < 92)
		launch_graphs(worker);
	else if (choice < 95)
		disable_node(worker);
	else if (choice < 97)
		update_graph(worker);
	else
		make_graph(worker);
}

static void *work(void *data)
{
	struct worker *worker = data;

	gpu_check(cuCtxSetCurrent(worker->gpu->context));
	worker->stream = gpu_new_stream();
	for (unsigned int i = 0; i < NODES; i++)
		gpu_check(cuMemAlloc_v2(&worker->outputs[i], BLOCKS_MAX * sizeof(uint32_t)));
	make_graph(worker);
	while (shared->state == RUNNING)
		do_something(worker);
	destroy_graph(worker);
	for (unsigned int i = 0; i < NODES; i++)
		gpu_check(cuMemFree_v2(worker->outputs[i]));
	gpu_check(cuStreamDestroy_v2(worker->stream));
	return NULL;
}

/* The load's own editor, which is not killed. */
static void *change_all_the_time(void *data)
{
	struct segment *segment = data;
	struct error error;

	while (shared->state == RUNNING) {
		assert_done(plan_edit(&shared->plan, segment, &error));
		shared->changes++;
		usleep(CHANGE_PAUSE_US);
	}
	return NULL;
}

static void make_plan(const struct gpu_under_test *gpus, unsigned int count, struct segment *segment)
{
	shared->plan.gpu_count = count;
	for (unsigned int i = 0; i < count; i++) {
		shared->plan.gpus[i] = *gpus[i].topology;
		gpu_set_partition(&gpus[i], gpu_all(&gpus[i]));
	}
	shared->plan.start = plan_last(segment);
	shared->worker_count = count * WORKERS_PER_GPU;
}

static unsigned int open_gpus(struct gpu_under_test *gpus)
{
	int present = gpu_initialise();
	unsigned int count = present > PLAN_GPUS ? PLAN_GPUS : (unsigned int)present;

	for (unsigned int i = 0; i < count; i++) {
		gpu_open(&gpus[i], (int)i);
		if (gpus[i].topology->compute_major >= 9)
			gpu_check(cuFuncSetAttribute(gpus[i].where, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1));
	}
	return count;
}

static void run_threads(const struct gpu_under_test *gpus, struct segment *segment)
{
	struct worker workers[WORKERS_MAX] = {{0}};
	pthread_t threads[WORKERS_MAX];

	shared->state = RUNNING;
	pthread_t changer = thread_start(change_all_the_time, segment);

	for (unsigned int i = 0; i < shared->worker_count; i++) {
		unsigned int gpu = i % shared->plan.gpu_count;

		workers[i] = (struct worker){
			.number = i, .gpu_number = gpu, .gpu = &gpus[gpu], .segment = segment, .random = i};
		threads[i] = thread_start(work, &workers[i]);
	}
	sleep(soak_seconds());
	shared->state = OVER;
	for (unsigned int i = 0; i < shared->worker_count; i++)
		pthread_join(threads[i], NULL);
	pthread_join(changer, NULL);
}

static void load(void)
{
	static struct gpu_under_test gpus[PLAN_GPUS];
	unsigned int count = open_gpus(gpus);
	struct segment segment = gpu_own_segment();

	make_plan(gpus, count, &segment);
	run_threads(gpus, &segment);
	segment_read_counters(&segment, &shared->counters);
	segment_close(&segment);
	for (unsigned int i = 0; i < count; i++) {
		gpu_check(cuCtxSetCurrent(gpus[i].context));
		shared->counts[i] = gpu_kernels_at_rest(&gpus[i]);
		gpu_close(&gpus[i]);
	}
}

/* --- editors and their killer ------------------------------------------------------------------------------------ */

static _Noreturn void edit_until_killed(pid_t pid)
{
	struct segment segment;
	struct error error;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (segment_open(&segment, pid, NULL, NULL) != SEGMENT_FOUND)
		_exit(1);
	for (unsigned int i = 0; i < EDITS_MAX; i++) {
		if (plan_edit(&shared->plan, &segment, &error) < 0)
			_exit(1);
		shared->edits++;
	}
	pause();
	_exit(1);
}

/* Kills an editor, most of the time in the middle of an edit. */
static void kill_one_editor(pid_t pid, uint64_t *random)
{
	uint64_t edits = shared->edits;
	pid_t editor = fork();
	int status = 0;

	if (editor == 0)
		edit_until_killed(pid);
	while (shared->edits == edits && waitpid(editor, &status, WNOHANG) == 0)
		usleep(20);
	usleep((useconds_t)(plan_random(random) % EDITOR_LIFE_US));
	kill(editor, SIGKILL);
	waitpid(editor, &status, 0);
	/* After the end of the load, an editor finds no segment. */
	if (WIFSIGNALED(status))
		shared->killed++;
	else if (shared->state == RUNNING)
		shared->failed_editors++;
}

static _Noreturn void kill_editors(pid_t pid)
{
	uint64_t random = 0;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (shared->state == STARTING)
		usleep(1000);
	while (shared->state == RUNNING) {
		kill_one_editor(pid, &random);
		usleep(KILL_PAUSE_US);
	}
	_exit(0);
}

/* --- watching ---------------------------------------------------------------------------------------------------- */

/* Waits for the end of the load, and kills it if one of its workers hangs. Returns the number of that worker, or -1. */
static int watch(pid_t pid)
{
	uint64_t last[WORKERS_MAX] = {0};
	time_t moved[WORKERS_MAX];
	siginfo_t info = {.si_pid = 0};
	int hung = -1;

	for (unsigned int i = 0; i < WORKERS_MAX; i++)
		moved[i] = time(NULL);
	while (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == 0 && hung < 0) {
		usleep(50000);
		for (unsigned int i = 0; i < WORKERS_MAX; i++) {
			if (shared->kernels[i] != last[i] || i >= shared->worker_count)
				moved[i] = time(NULL);
			last[i] = shared->kernels[i];
			hung = time(NULL) - moved[i] > PATIENCE ? (int)i : hung;
		}
	}
	if (hung >= 0)
		kill(pid, SIGKILL);
	return hung;
}

static void print_summary(void)
{
	uint64_t kernels = 0;

	for (unsigned int i = 0; i < shared->worker_count; i++)
		kernels += shared->kernels[i];
	print_message("# soak: %u s, %u GPUs: %llu kernels checked, %llu widened; %llu graphs made or updated, "
	              "%llu nodes refreshed; %llu changes, %llu edits by editors of which %llu were killed\n",
	              soak_seconds(), shared->plan.gpu_count, (unsigned long long)kernels,
	              (unsigned long long)shared->counters.reasons[SEGMENT_WIDENED],
	              (unsigned long long)shared->graphs, (unsigned long long)shared->counters.refreshed,
	              (unsigned long long)shared->changes, (unsigned long long)shared->edits,
	              (unsigned long long)shared->killed);
}

/* Whatever more there is, the driver has launched on its own. */
static void check_counts(unsigned int number)
{
	const struct counts_of_gpu *counts = &shared->counts[number];
	uint64_t launched = shared->launched[number];

	print_message("# soak: GPU %u: the workers launched %llu kernels; counted as launched %llu", number,
	              (unsigned long long)launched, (unsigned long long)counts->launched);
	if (counts->gaps & 1 << COUNTS_NO_SLOTS)
		print_message(", as ended none: this GPU cannot\n");
	else
		print_message(", as ended %llu; lost %lld\n", (unsigned long long)counts->ended,
		              (long long)(counts->launched - counts->ended));
	assert_true(counts->launched >= launched && counts->launched - launched < 100);
	assert_int_equal(counts->gaps & ~(1u << COUNTS_NO_SLOTS), 0);
	if (counts->gaps == 0)
		assert_int_equal(counts->ended, counts->launched);
}

TEST(soak)
{
	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(shared, MAP_FAILED);
	struct child child = child_start(load);
	pid_t killer = fork();

	if (killer == 0)
		kill_editors(child.pid);
	int hung = watch(child.pid);

	shared->state = OVER;
	waitpid(killer, NULL, 0);
	struct child_end end = child_wait(&child);

	if (hung >= 0)
		fail_msg("worker %d did nothing for %d s", hung, PATIENCE);
	child_assert_passed(&end);
	print_summary();
	for (unsigned int i = 0; i < shared->plan.gpu_count; i++)
		check_counts(i);
	for (int reason = 0; reason < SEGMENT_REASON_COUNT; reason++) {
		if (reason != SEGMENT_WIDENED)
			assert_int_equal(shared->counters.reasons[reason], 0);
	}
	assert_int_equal(shared->failed_editors, 0);
	assert_true(shared->killed > 0 && shared->changes > 0 && shared->counters.restricted > 0);
}

RUN_TESTS(NULL, NULL)
