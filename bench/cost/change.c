/*
 * Usage: change SAMPLES [PID]
 *
 * How long a change of another process's partition takes through nvtaskset.h, with a handle that is kept open. The
 * partition changes to one half of the GPU's TPCs and to the other in turn. Prints SAMPLES lines, each the mean of ten
 * changes in ns. Without PID this program starts an idle process; with PID, the process has its former partition at
 * the end. Does not use CUDA.
 */
#include "bench.h"

#include "nvtaskset.h"
#include "state/segment/owner.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define GPU 0
#define SAMPLES_MAX 10000000
/* Several changes for each sample, since reading the clock takes some of the time itself. */
#define CHANGES 10

/* A process with a partition; it ends with this one. */
static pid_t start_process(void)
{
	struct segment_revision whole = {.count = 0};
	struct segment segment;
	char byte = 0;
	int ready[2];

	if (pipe(ready) < 0)
		bench_fail("no pipe");
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (segment_create(&segment, &whole, NULL, -1, -1, NULL) == 0 && write(ready[1], &byte, 1) == 1)
			pause();
		_exit(EXIT_FAILURE);
	}
	close(ready[1]);
	if (pid < 0 || read(ready[0], &byte, 1) != 1)
		bench_fail("no process");
	close(ready[0]);
	return pid;
}

static void change(struct nvtaskset_partition *partition, const struct nvtaskset_set *set)
{
	struct nvtaskset_error error;

	if (nvtaskset_partition_set(partition, GPU, set, &error) < 0)
		bench_fail("%s", error.reason);
}

static void find_halves(const struct nvtaskset_topology *topology, struct nvtaskset_set halves[2])
{
	struct nvtaskset_set all = nvtaskset_gpu_tpcs(topology, GPU);
	unsigned int count = nvtaskset_set_count(&all);

	if (count < 2)
		bench_fail("GPU %d: has one TPC", GPU);
	halves[0] = halves[1] = (struct nvtaskset_set){{0}};
	nvtaskset_set_add_range(&halves[0], 0, count / 2 - 1);
	nvtaskset_set_add_range(&halves[1], count / 2, count - 1);
}

static double sample(struct nvtaskset_partition *partition, const struct nvtaskset_set halves[2])
{
	struct nvtaskset_set now;
	int64_t start = bench_now();

	for (int i = 0; i < CHANGES; i++)
		change(partition, &halves[i % 2]);
	int64_t end = bench_now();

	if (nvtaskset_partition_get(partition, GPU, &now, NULL) < 0 || !nvtaskset_set_equal(&now, &halves[1]))
		bench_fail("a change did not arrive");
	return (double)(end - start) / CHANGES;
}

int main(int count, char **arguments)
{
	double samples = count > 1 ? bench_number(arguments[1], "SAMPLES") : 0;
	double pid = count > 2 ? bench_number(arguments[2], "PID") : 0;
	struct nvtaskset_topology *topology;
	struct nvtaskset_partition *partition;
	struct nvtaskset_set before, halves[2];
	struct nvtaskset_error error;

	if (count > 3 || samples < 1 || samples > SAMPLES_MAX)
		bench_fail("Usage: change SAMPLES [PID]");
	double *times = calloc((size_t)samples, sizeof *times);

	if (!times)
		bench_fail("no memory");
	if (nvtaskset_topology_load(&topology, &error) < 0 ||
	    nvtaskset_partition_open(&partition, topology, count > 2 ? (pid_t)pid : start_process(), &error) < 0 ||
	    nvtaskset_partition_get(partition, GPU, &before, &error) < 0)
		bench_fail("%s", error.reason);
	find_halves(topology, halves);
	for (size_t i = 0; i < (size_t)samples; i++)
		times[i] = sample(partition, halves);
	change(partition, &before);
	for (size_t i = 0; i < (size_t)samples; i++)
		printf("%.1f\n", times[i]);
	nvtaskset_partition_close(partition);
	nvtaskset_topology_free(topology);
	free(times);
	return EXIT_SUCCESS;
}
