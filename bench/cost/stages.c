/*
 * Usage: stages COMMAND…
 *        stages
 *
 * Prints how many ms each stage of a start takes, a line each: STAGE,MS. With a COMMAND, runs the command, which ends
 * in this program without a COMMAND; for other programs there is the whole only. Without a COMMAND, runs a kernel, and
 * prints when each stage has ended.
 *
 *   exec      until main: the command in front, and the dynamic linker
 *   load      the driver's library, and the library in front of the driver
 *   init      cuInit
 *   context   a context and a stream
 *   launch    the module, and the first kernel until its end
 *   destroy   the context's end
 *   exit      until the parent knows
 */
#include "bench.h"
#include "gpu/kernels.h"

#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- the program ------------------------------------------------------------------------------------------------ */

static void reach(const char *stage)
{
	printf("%s %" PRId64 "\n", stage, bench_now());
}

static void initialise(void *driver)
{
	CUresult (*init)(unsigned int flags) = NULL;

	if (driver)
		*(void **)&init = dlsym(driver, "cuInit");
	if (!init || init(0) != CUDA_SUCCESS)
		bench_fail("CUDA does not start");
}

static void run(void)
{
	struct bench_gpu gpu;

	reach("exec");
	void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);

	reach("load");
	initialise(driver);
	reach("init");
	bench_open(&gpu);
	reach("context");
	const struct bench_launch launch = {bench_kernel(kernels_ptx, "nothing"), 1, 1, 1, 1, 0, NULL};

	bench_start(&gpu, &launch);
	bench_wait(&gpu);
	reach("launch");
	bench_close(&gpu);
	reach("destroy");
}

/* --- its parent ------------------------------------------------------------------------------------------------- */

/* Returns where the child's output can be read. */
static FILE *start(char **command, pid_t *child)
{
	int ends[2];

	if (pipe(ends) < 0 || (*child = fork()) < 0)
		bench_fail("%s", strerror(errno));
	if (*child == 0) {
		dup2(ends[1], STDOUT_FILENO);
		close(ends[0]);
		close(ends[1]);
		execvp(command[0], command);
		bench_fail("%s: %s", command[0], strerror(errno));
	}
	close(ends[1]);
	return fdopen(ends[0], "r");
}

static void print(const char *stage, int64_t from, int64_t to)
{
	printf("%s,%.3f\n", stage, (double)(to - from) / 1e6);
}

static int measure(char **command)
{
	int64_t began = bench_now(), before = began, now;
	char stage[32];
	pid_t child;
	FILE *output = start(command, &child);
	int status = 0;

	while (fscanf(output, "%31s %" SCNd64, stage, &now) == 2) {
		print(stage, before, now);
		before = now;
	}
	(void)TEMP_FAILURE_RETRY(waitpid(child, &status, 0));
	now = bench_now();
	if (before != began)
		print("exit", before, now);
	print("all", began, now);
	return status == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int count, char **arguments)
{
	int status = EXIT_SUCCESS;

	if (count > 1)
		status = measure(arguments + 1);
	else
		run();
	return status;
}
