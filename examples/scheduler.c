/*
 * A tiny scheduler: gives the TPCs of GPU 0 to running programs by turns. Each of them keeps one TPC all the time, so
 * that it never stands still; who has the turn has all the others, too.
 *
 *   nvtaskset all ./a & nvtaskset all ./b &
 *   cc scheduler.c -o scheduler $(pkg-config --cflags --libs nvtaskset)
 *   ./scheduler 500 20 $(pgrep -x a) $(pgrep -x b)      # 20 turns of half a second
 */
#include <nvtaskset.h>

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#define GPU 0
#define PROGRAMS_MAX 64

struct program {
	int pid;
	struct nvtaskset_partition *partition; /* NULL: it has ended */
	struct nvtaskset_set before;
};

static struct program programs[PROGRAMS_MAX];
static unsigned int program_count;

static void fail(const struct nvtaskset_error *error)
{
	fprintf(stderr, "scheduler: %s\n", error->reason);
	exit(EXIT_FAILURE);
}

static void open_program(const struct nvtaskset_topology *topology, int pid)
{
	struct program *program = &programs[program_count];
	struct nvtaskset_error error;

	program->pid = pid;
	if (nvtaskset_partition_open(&program->partition, topology, pid, &error) < 0 ||
	    nvtaskset_partition_get(program->partition, GPU, &program->before, &error) < 0)
		fail(&error);
	program_count++;
}

/* Who ends is found later; whose partition cannot be changed just now keeps it until the next turn. */
static void change(const struct program *program, const struct nvtaskset_set *set)
{
	struct nvtaskset_error error;

	if (nvtaskset_partition_set(program->partition, GPU, set, &error) < 0 && error.code != NVTASKSET_ERROR_BUSY &&
	    error.code != NVTASKSET_ERROR_OUT_OF_REACH && error.code != NVTASKSET_ERROR_ENDED)
		fail(&error);
}

/* Program `number` has the turn. */
static void change_all(unsigned int number, const struct nvtaskset_set *all)
{
	struct nvtaskset_set rest = *all;
	char text[NVTASKSET_SET_TEXT];

	for (unsigned int i = 0; i < program_count; i++) {
		if (programs[i].partition)
			nvtaskset_set_remove(&rest, i);
	}
	for (unsigned int i = 0; i < program_count; i++) {
		struct nvtaskset_set own = {{0}};

		if (i == number)
			own = rest;
		nvtaskset_set_add(&own, i);
		if (programs[i].partition)
			change(&programs[i], &own);
		if (programs[i].partition && i == number)
			printf("%d: %s\n", programs[i].pid, nvtaskset_set_format_list(&own, text));
	}
	fflush(stdout);
}

/* Not where it does not obey for a while: its profiler may leave. */
static bool is_gone(const struct program *program)
{
	struct nvtaskset_error error;

	return nvtaskset_partition_check(program->partition, &error) < 0 && error.code != NVTASKSET_ERROR_NOT_IN_FORCE &&
	       error.code != NVTASKSET_ERROR_OUT_OF_REACH;
}

/* Lets a turn pass, or less where a program ends meanwhile; who has ended is out. */
static void wait_for_turn(int milliseconds)
{
	struct pollfd ends[PROGRAMS_MAX];

	for (unsigned int i = 0; i < program_count; i++) {
		ends[i].fd = programs[i].partition ? nvtaskset_partition_descriptor(programs[i].partition) : -1;
		ends[i].events = POLLIN;
		ends[i].revents = 0;
	}
	poll(ends, program_count, milliseconds);
	for (unsigned int i = 0; i < program_count; i++) {
		if (programs[i].partition && is_gone(&programs[i])) {
			nvtaskset_partition_close(programs[i].partition);
			programs[i].partition = NULL;
			printf("%d: gone\n", programs[i].pid);
		}
	}
}

static unsigned int next_program(unsigned int number)
{
	unsigned int next = number;

	do {
		next = (next + 1) % program_count;
	} while (!programs[next].partition && next != number);
	return next;
}

/* As if we had never been here. */
static void put_back(void)
{
	for (unsigned int i = 0; i < program_count; i++) {
		if (programs[i].partition)
			nvtaskset_partition_set(programs[i].partition, GPU, &programs[i].before, NULL);
		nvtaskset_partition_close(programs[i].partition);
	}
}

int main(int count, char **arguments)
{
	struct nvtaskset_topology *topology;
	struct nvtaskset_set all;
	struct nvtaskset_error error;
	unsigned int number = 0;

	if (count < 4 || count - 3 > PROGRAMS_MAX) {
		fputs("Usage: scheduler MILLISECONDS TURNS PID...\n", stderr);
		return EXIT_FAILURE;
	}
	if (nvtaskset_topology_load(&topology, &error) < 0)
		fail(&error);
	all = nvtaskset_gpu_tpcs(topology, GPU);
	for (int i = 3; i < count; i++)
		open_program(topology, atoi(arguments[i]));
	for (int turn = 0; turn < atoi(arguments[2]) && programs[number].partition; turn++) {
		change_all(number, &all);
		wait_for_turn(atoi(arguments[1]));
		number = next_program(number);
	}
	put_back();
	nvtaskset_topology_free(topology);
	return EXIT_SUCCESS;
}
