/*
 * Usage: attach THREADS TIMES
 *
 * How long nvtaskset --attach makes a program wait. The program has THREADS threads; each launches a kernel and sleeps
 * for a millisecond, again and again. It attaches to itself, TIMES times, in a new process each time. Prints in ms:
 *
 *   borrowed   how long the thread that was borrowed stood still, as the command says (-v)
 *   before     the longest time between two launches of any thread in the second before,
 *   during     and in the time in which the command ran
 *   command    how long that was
 *
 * The command is ../nvtaskset, seen from here.
 */
#include "bench.h"
#include "gpu/kernels.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS_MAX 1024
#define PAUSE_NS 1000000
#define SECOND_NS 1000000000

static struct bench_gpu gpu;
static struct bench_launch launch = {.grid_x = 1, .grid_y = 1, .block_x = 1, .block_y = 1};
static atomic_bool ends;
static _Atomic int64_t longest;
static atomic_uint running;

static void raise_to(_Atomic int64_t *value, int64_t wanted)
{
	int64_t current = *value;

	while (current < wanted && !atomic_compare_exchange_weak(value, &current, wanted))
		;
}

static void *work(void *unused)
{
	int64_t last = bench_now();

	(void)unused;
	bench_check(cuCtxSetCurrent(gpu.context));
	running++;
	while (!ends) {
		int64_t now;

		bench_start(&gpu, &launch);
		bench_sleep(PAUSE_NS);
		now = bench_now();
		raise_to(&longest, now - last);
		last = now;
	}
	return NULL;
}

/* Runs the command on this process, and returns its standard error. */
static void attach(char *text, size_t room)
{
	char path[BENCH_PATH], command[BENCH_PATH + 100];

	bench_beside(path, "../nvtaskset");
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
	snprintf(command, sizeof command, "'%s' --attach -v -tp 0 %d 2>&1 >/dev/null", path, (int)getpid());
	FILE *output = popen(command, "re");

	if (!output || !fgets(text, (int)room, output) || pclose(output) != 0)
		bench_fail("%s: %s", command, output ? text : "cannot be run");
}

static double borrowed_ms(const char *text)
{
	const char *behind = "stood still for ";
	const char *number = strstr(text, behind);

	if (!number)
		bench_fail("the command said: %s", text);
	return strtod(number + strlen(behind), NULL);
}

static void measure(unsigned int threads)
{
	static pthread_t workers[THREADS_MAX];
	char text[1000] = "";

	bench_open(&gpu);
	launch.function = bench_kernel(kernels_ptx, "nothing");
	for (unsigned int i = 0; i < threads; i++)
		if (pthread_create(&workers[i], NULL, work, NULL) != 0)
			bench_fail("no thread");
	while (running < threads)
		bench_sleep(PAUSE_NS);
	longest = 0;
	bench_sleep(SECOND_NS);
	int64_t before = atomic_exchange(&longest, 0), start = bench_now();

	attach(text, sizeof text);
	int64_t command = bench_now() - start;

	/* Lets threads that are still waiting note their pause. */
	bench_sleep(20 * PAUSE_NS);
	printf("borrowed,%.1f\nbefore,%.1f\nduring,%.1f\ncommand,%.1f\n", borrowed_ms(text), (double)before / 1e6,
	       (double)longest / 1e6, (double)command / 1e6);
	ends = true;
	for (unsigned int i = 0; i < threads; i++)
		pthread_join(workers[i], NULL);
	bench_wait(&gpu);
	bench_close(&gpu);
}

int main(int count, char **arguments)
{
	unsigned int threads = count == 3 ? (unsigned int)bench_number(arguments[1], "THREADS") : 0;
	int times = count == 3 ? (int)bench_number(arguments[2], "TIMES") : 0, status = 0;

	if (threads == 0 || threads > THREADS_MAX)
		bench_fail("Usage: attach THREADS TIMES");
	for (int i = 0; i < times && status == 0; i++) {
		pid_t child = fork();

		if (child == 0) {
			measure(threads);
			exit(EXIT_SUCCESS);
		}
		waitpid(child, &status, 0);
	}
	return status == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
