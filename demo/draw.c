/*
 * Usage: draw NAME:PID NAME:PID
 *
 * Draws two programs in partitions on GPU 0: a row for each 0.4 s, with a place for each two TPCs, until one of them ends. It uses
 * nothing but nvtaskset.h. Colours are for a terminal; elsewhere a place is a letter.
 */
#include "nvtaskset.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define GPU 0
#define PROGRAMS 2
#define ROW_MS 400
#define PATIENCE_S 20
#define MANY 20 /* kernels a second of a program that works; one that waits has fewer */

/* A TPC is free; a program has it, and rests or works; a program has borrowed it. Of several that have it, the busiest counts. */
enum look { FREE, RESTS, WORKS = RESTS + PROGRAMS, BORROWS = WORKS + PROGRAMS, LOOKS = BORROWS + PROGRAMS };

static const unsigned int colors[LOOKS] = {236, 17, 58, 33, 214, 75, 229};
static const char letters[LOOKS] = ".aeAEae";

struct program {
	char name[16];
	struct nvtaskset_partition *partition;
	struct nvtaskset_set tpcs, borrowed;
	uint64_t ended, borrowed_tpc_us;
	double rate; /* kernels a second since the last row */
};

static struct program programs[PROGRAMS];
static unsigned int tpc_count;
static bool has_colors;

static _Noreturn void fail(const char *why)
{
	fprintf(stderr, "draw: %s\n", why);
	exit(EXIT_FAILURE);
}

/* Rows are at multiples of their length, as the pauses of `where` are. */
static void wait_for_row(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	long left = ROW_MS * 1000000L - (now.tv_sec % 2 * 1000000000L + now.tv_nsec) % (ROW_MS * 1000000L);
	nanosleep(&(struct timespec){.tv_nsec = left}, NULL);
}

/* A program that starts just now has no partition yet. */
static void open_program(struct program *program, const struct nvtaskset_topology *topology, const char *text)
{
	const char *colon = strchr(text, ':');
	struct nvtaskset_error error;
	int result = -1;

	if (!colon || colon - text >= (int)sizeof program->name)
		fail("Usage: draw NAME:PID NAME:PID");
	memcpy(program->name, text, (size_t)(colon - text));
	for (int tries = 0; result < 0 && tries < PATIENCE_S * 1000 / ROW_MS; tries++) {
		result = nvtaskset_partition_open(&program->partition, topology, (pid_t)atoi(colon + 1), &error);
		if (result < 0)
			wait_for_row();
	}
	if (result < 0)
		fail(error.reason);
}

/* Whether it still runs. */
static bool look(struct program *program)
{
	struct nvtaskset_kernels kernels = {.size = sizeof kernels};
	struct nvtaskset_lending lending = {.size = sizeof lending};
	struct nvtaskset_error error;
	bool runs = nvtaskset_partition_get(program->partition, GPU, &program->tpcs, &error) == 0 &&
	            nvtaskset_partition_kernels(program->partition, GPU, &kernels, &error) == 0 &&
	            nvtaskset_partition_lending(program->partition, &lending, &error) == 0 &&
	            nvtaskset_partition_check(program->partition, &error) == 0;

	program->rate = (double)(kernels.ended - program->ended) * 1000 / ROW_MS;
	program->ended = kernels.ended;
	/* What it has borrowed since the last row, as far as looks have seen it. */
	if (lending.borrowed_tpc_us == program->borrowed_tpc_us)
		program->borrowed = (struct nvtaskset_set){{0}};
	else if (nvtaskset_set_count(&lending.borrowed) > 0)
		program->borrowed = nvtaskset_set_without(&lending.borrowed, &program->tpcs);
	program->borrowed_tpc_us = lending.borrowed_tpc_us;
	return runs;
}

static enum look look_of(unsigned int tpc)
{
	enum look found = FREE;
	double rate = -1;

	for (unsigned int i = 0; i < PROGRAMS; i++) {
		bool works = programs[i].rate >= MANY;

		if (nvtaskset_set_has(&programs[i].tpcs, tpc) && (works ? programs[i].rate : 0) > rate) {
			found = works ? WORKS + i : RESTS + i;
			rate = works ? programs[i].rate : 0;
		}
	}
	for (unsigned int i = 0; i < PROGRAMS; i++) {
		if (rate <= 0 && programs[i].rate >= MANY && nvtaskset_set_has(&programs[i].borrowed, tpc))
			found = BORROWS + i;
	}
	return found;
}

static void draw_places(void)
{
	for (unsigned int tpc = 0; tpc < tpc_count; tpc += 2) {
		enum look look = look_of(tpc);

		if (has_colors)
			printf("\033[48;5;%um ", colors[look]);
		else
			putchar(letters[look]);
	}
	fputs(has_colors ? "\033[m" : "", stdout);
}

static void draw_row(void)
{
	fputs("  ", stdout);
	draw_places();
	for (unsigned int i = 0; i < PROGRAMS; i++)
		printf("   %s %4.0f/s", programs[i].name, programs[i].rate);
	putchar('\n');
	fflush(stdout);
}

static void draw_sample(enum look look, const char *what)
{
	if (has_colors)
		printf("  \033[48;5;%um  \033[m %s", colors[look], what);
	else
		printf("  %c %s", letters[look], what);
}

static void draw_legend(void)
{
	printf("A line is 0.4 s: TPCs 0 to %u from left to right, and kernels a second.\n", tpc_count - 1);
	for (unsigned int i = 0; i < PROGRAMS; i++) {
		draw_sample(WORKS + i, programs[i].name);
		draw_sample(BORROWS + i, "on lent TPCs");
		draw_sample(RESTS + i, "idle  ");
	}
	puts("\n");
}

int main(int count, char **arguments)
{
	struct nvtaskset_topology *topology;
	struct nvtaskset_gpu gpu = {.size = sizeof gpu};
	struct nvtaskset_error error;
	bool run = true;

	if (count != 1 + PROGRAMS)
		fail("Usage: draw NAME:PID NAME:PID");
	if (nvtaskset_topology_load(&topology, &error) < 0 || nvtaskset_gpu_describe(topology, GPU, &gpu, &error) < 0)
		fail(error.reason);
	tpc_count = gpu.tpc_count;
	has_colors = isatty(STDOUT_FILENO) && !getenv("NO_COLOR");
	for (unsigned int i = 0; i < PROGRAMS; i++) {
		open_program(&programs[i], topology, arguments[1 + i]);
		look(&programs[i]);
	}
	draw_legend();
	while (run) {
		wait_for_row();
		for (unsigned int i = 0; i < PROGRAMS; i++)
			run = look(&programs[i]) && run;
		if (run)
			draw_row();
	}
	return EXIT_SUCCESS;
}
