/*
 * Usage: looking FIRST REPEATS MS
 *        looking watch PID
 *
 * What it costs that somebody looks (monitor/monitor.h), within one process, which has a partition. It is looked at by
 * nobody; by a program that does nothing else, every 50 ms (`watch`); and by `nvtaskset top`: first by the one with the
 * number FIRST, and so on. Each time, REPEATS times in turn:
 *
 *   time,2 us,watch,NS      the time from one kernel to the next, of many that are launched in a row for MS; kernels of 10 µs;
 *   time,10 us,watch,NS     a graph of 1000 kernels of 2 µs
 *   time,graph,watch,NS
 *   cpu,2 us,watch,PERCENT  the watcher's own time meanwhile, of one CPU
 *
 * And of the same graph the call that launches it, while the GPU has nothing to do: as before (unchanged), the first one that
 * is looked at (begins), the next one (goes on), the first one that is not (ends):
 *
 *   graph,begins,US
 */
#include "bench.h"
#include "gpu/kernels.h"
#include "own_times.h"
#include "monitor/monitor.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NODES 1000
#define GRAPH_LAUNCHES 20
#define NS_PER_MS 1000000
#define SETTLE_NS (20 * NS_PER_MS)

/* With what begins and ends a kernel, on an H100. */
#define CYCLES_OF_2_US UINT64_C(3000)
#define CYCLES_OF_10_US UINT64_C(17000)

static struct bench_gpu gpu;
static struct bench_launch kernel_of_2_us, kernel_of_10_us;
static CUgraphExec graph;

/* --- work ----------------------------------------------------------------------------------------------------- */

static void start_2_us(void)
{
	bench_start(&gpu, &kernel_of_2_us);
}

static void start_10_us(void)
{
	bench_start(&gpu, &kernel_of_10_us);
}

static void start_graph(void)
{
	bench_check(cuGraphLaunch(graph, gpu.stream));
}

static const struct work {
	const char *name;
	void (*start)(void);
	int kernels, batch; /* of one start; so many starts are in a row */
} works[] = {
	{"2 us", start_2_us, 1, 2000},
	{"10 us", start_10_us, 1, 500},
	{"graph", start_graph, NODES, 4},
};

#define WORKS (int)(sizeof works / sizeof works[0])

static void run_batch(const struct work *work)
{
	for (int i = 0; i < work->batch; i++)
		work->start();
	bench_wait(&gpu);
}

/* The time from kernel to kernel. What comes first is not measured: it uploads graphs. */
static double time_of(const struct work *work, int64_t ns)
{
	int64_t kernels = 0, begin, now;

	work->start();
	bench_wait(&gpu);
	begin = now = bench_now();
	while (now - begin < ns) {
		run_batch(work);
		kernels += (int64_t)work->batch * work->kernels;
		now = bench_now();
	}
	return (double)(now - begin) / (double)kernels;
}

static void prepare_graph(void)
{
	bench_capture(&gpu);
	for (int i = 0; i < NODES; i++)
		start_2_us();
	graph = bench_captured(&gpu);
}

/* --- watchers ------------------------------------------------------------------------------------------------- */

/* Looks until it is ended, or until the process has. */
static int watch(pid_t pid)
{
	struct error error;
	struct monitor_times times;
	struct monitor *look = monitor_begin(pid, NULL, &error);

	if (!look)
		bench_fail("%s", error.reason);
	while (monitor_take(look, &times, NULL, &error) == 0)
		bench_sleep(MONITOR_TAKE_MS * NS_PER_MS);
	monitor_end(look);
	return EXIT_SUCCESS;
}

static void become_nobody(const char *pid)
{
	(void)pid;
}

static void become_watch(const char *pid)
{
	execl("/proc/self/exe", "looking", "watch", pid, (char *)NULL);
}

static void become_top(const char *pid)
{
	(void)pid;
	execlp("nvtaskset", "nvtaskset", "top", "--json", "--delay", "1", (char *)NULL);
}

static const struct watcher {
	const char *name;
	void (*become)(const char *pid); /* returns only if it failed, or if there is nobody */
} watchers[] = {
	{"nobody", become_nobody},
	{"watch", become_watch},
	{"top", become_top},
};

#define WATCHERS (int)(sizeof watchers / sizeof watchers[0])

/* What it prints is not wanted; what it complains about is. */
static pid_t start_watcher(const struct watcher *watcher)
{
	char parent[16];
	pid_t pid;

	if (watcher == &watchers[0])
		return 0;
	snprintf(parent, sizeof parent, "%d", (int)getpid());
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (freopen("/dev/null", "w", stdout))
			watcher->become(parent);
		bench_fail("%s: cannot be started", watcher->name);
	}
	if (pid < 0)
		bench_fail("fork failed");
	own_times_await();
	return pid;
}

static void end_watcher(pid_t pid)
{
	if (pid != 0) {
		kill(pid, SIGTERM);
		waitpid(pid, NULL, 0);
	}
	own_times_end();
}

/* How long it has been on a CPU; -1 if there is nobody, or nobody says so. */
static int64_t cpu_time_of(pid_t pid)
{
	clockid_t clock;
	struct timespec time;

	if (pid == 0 || clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &time) != 0)
		return -1;
	return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

/* --- what is measured ----------------------------------------------------------------------------------------- */

static void measure(const struct work *work, const struct watcher *watcher, pid_t pid, int64_t ns)
{
	int64_t begin = bench_now(), before = cpu_time_of(pid);

	printf("time,%s,%s,%.1f\n", work->name, watcher->name, time_of(work, ns));
	int64_t used = cpu_time_of(pid) - before;

	if (before >= 0)
		printf("cpu,%s,%s,%.3f\n", work->name, watcher->name, 100 * (double)used / (double)(bench_now() - begin));
	if (own_times_are_on() != (pid != 0))
		bench_fail("%s: it is %slooked at", watcher->name, pid ? "not " : "");
}

static void measure_with(const struct watcher *watcher, int repeats, int64_t ns)
{
	pid_t pid = start_watcher(watcher);

	bench_sleep(SETTLE_NS);
	for (int i = 0; i < repeats * WORKS; i++)
		measure(&works[i % WORKS], watcher, pid, ns);
	end_watcher(pid);
}

static void measure_call(const char *step)
{
	int64_t begin = bench_now();

	start_graph();
	printf("graph,%s,%.2f\n", step, (double)(bench_now() - begin) / 1e3);
	bench_wait(&gpu);
}

/* How many nodes have got a cell. */
static uint64_t stamped(const struct timestamps *ring)
{
	return atomic_load(&ring->nodes);
}

/* The driver may have nodes of its own. */
static void measure_graph(void)
{
	const struct timestamps *ring = own_times_ring();

	for (int i = 0; i < GRAPH_LAUNCHES; i++) {
		uint64_t before = stamped(ring);

		measure_call("unchanged");
		own_times_begin();
		measure_call("begins");
		uint64_t refreshed = stamped(ring);

		measure_call("goes on");
		own_times_end();
		measure_call("ends");
		if (refreshed - before < NODES || stamped(ring) != refreshed)
			bench_fail("the graph was not refreshed as it should have been");
	}
}

int main(int count, char **arguments)
{
	static const uint64_t cycles_of_2_us = CYCLES_OF_2_US, cycles_of_10_us = CYCLES_OF_10_US;

	if (count == 3 && strcmp(arguments[1], "watch") == 0)
		return watch((pid_t)bench_number(arguments[2], "PID"));
	if (count != 4)
		bench_fail("Usage: looking FIRST REPEATS MS, or looking watch PID");
	int first = (int)bench_number(arguments[1], "FIRST"), repeats = (int)bench_number(arguments[2], "REPEATS");
	int64_t ns = (int64_t)(bench_number(arguments[3], "MS") * NS_PER_MS);

	bench_open(&gpu);
	CUdeviceptr output = bench_memory(sizeof(uint32_t));
	void *short_arguments[] = {&output, (void *)&cycles_of_2_us}, *long_arguments[] = {&output, (void *)&cycles_of_10_us};
	CUfunction where = bench_kernel(kernels_ptx, "where");

	kernel_of_2_us = (struct bench_launch){where, 1, 1, 1, 1, 0, short_arguments};
	kernel_of_10_us = (struct bench_launch){where, 1, 1, 1, 1, 0, long_arguments};
	prepare_graph();
	for (int i = 0; i < WORKS; i++)
		run_batch(&works[i]);
	for (int i = 0; i < WATCHERS; i++)
		measure_with(&watchers[(first + i) % WATCHERS], repeats, ns);
	measure_graph();
	bench_close(&gpu);
	return EXIT_SUCCESS;
}
