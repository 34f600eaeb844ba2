#include "bars.h"

#include "terminal/terminal.h"

#include <string.h>

#define MANY 20 /* kernels a second of a program that works; a waiting program has fewer */

enum look {
	LOOK_IDLE,
	LOOK_WORKS,
	LOOK_BORROWS,
	LOOKS
};

static const unsigned int colours[BARS_PROGRAMS][LOOKS] = {
    {17, 33, 75}, {58, 214, 229}, {22, 34, 120}, {53, 134, 183}, {52, 160, 217}, {23, 37, 123},
};

#define FREE_COLOUR 236

struct program {
	const struct process *process;
	char name[32];
	struct tpcset borrowed;
	double rate; /* -1: not on the GPU */
};

/* `program` -1: a free place. */
static void draw_place(FILE *page, int program, enum look look)
{
	if (terminal_look().colours == TERMINAL_PALETTE)
		fprintf(page, "\033[48;5;%um \033[m", program < 0 ? FREE_COLOUR : colours[program][look]);
	else
		fputc(program < 0 ? '.' : (look == LOOK_IDLE ? 'a' : 'A') + program, page);
}

static void draw_sample(FILE *page, int program, enum look look, const char *what)
{
	fputs("  ", page);
	draw_place(page, program, look);
	fprintf(page, " %s", what);
}

static void introduce(FILE *page, const struct program *programs, int count)
{
	char text[48];

	for (int i = 0; i < count; i++) {
		snprintf(text, sizeof text, "%s %d", programs[i].name, (int)programs[i].process->pid);
		draw_sample(page, i, LOOK_WORKS, text);
		draw_sample(page, i, LOOK_BORROWS, "on lent TPCs");
		draw_sample(page, i, LOOK_IDLE, "idle\n");
	}
}

/* The TPCs borrowed since the last look, as far as looks have seen. */
static struct tpcset borrowed_since(struct segment_borrowed *before, const struct segment_borrowed *now)
{
	bool has_more = now->tpc_us != before->tpc_us, sees = tpcset_count(&now->tpcs) > 0;
	struct tpcset last = before->tpcs;

	*before = *now;
	before->tpcs = has_more ? (sees ? now->tpcs : last) : (struct tpcset){{0}};
	return before->tpcs;
}

/* Returns the number of programs. */
static int find_programs(struct bars *bars, const struct processes *processes, struct program *programs, FILE *page)
{
	pid_t pids[BARS_PROGRAMS] = {0};
	int count = 0;

	for (size_t i = 0; i < processes->count && count < BARS_PROGRAMS; i++) {
		const struct process *process = &processes->list[i];
		size_t length = strcspn(process->command, " ");
		const char *slash = memrchr(process->command, '/', length);
		const char *begin = slash ? slash + 1 : process->command;

		if (process->yields_to_descendants || !tracks_want(bars->tracks, process))
			continue;
		snprintf(programs[count].name, sizeof programs->name, "%.*s",
		         (int)(process->command + length - begin), begin);
		programs[count].process = process;
		programs[count].borrowed = borrowed_since(&bars->borrowed[count], &process->borrowed);
		pids[count++] = process->pid;
	}
	if (memcmp(pids, bars->pids, sizeof pids) != 0)
		introduce(page, programs, count);
	memcpy(bars->pids, pids, sizeof pids);
	return count;
}

/* A borrower is seen where the programs with the TPC are idle. */
static void draw_tpc(FILE *page, const struct program *programs, int count, struct pci_address pci, unsigned int tpc)
{
	enum look look = LOOK_IDLE;
	double most = -1;
	int found = -1;

	for (int i = 0; i < count; i++) {
		const struct segment_partition *own = revision_find_partition(&programs[i].process->revision, pci);
		double rate = programs[i].rate >= MANY ? programs[i].rate : 0;

		if (own && tpcset_has(&own->set, tpc) && rate > most) {
			found = i;
			look = rate > 0 ? LOOK_WORKS : LOOK_IDLE;
			most = rate;
		}
	}
	for (int i = 0; i < count && most <= 0; i++) {
		if (programs[i].rate >= MANY && tpcset_has(&programs[i].borrowed, tpc)) {
			found = i;
			look = LOOK_BORROWS;
		}
	}
	draw_place(page, found, look);
}

static void draw_line(struct program *programs, int count, const struct activities *activities,
                      const struct topology *gpu, FILE *page)
{
	for (int i = 0; i < count; i++) {
		const struct row *row = activities_find(activities, programs[i].process, gpu->pci);

		programs[i].rate = row ? row->numbers[NUMBER_RATE].value : -1;
	}
	fputs("  ", page);
	for (unsigned int tpc = 0; tpc < gpu->tpc_count; tpc += 2)
		draw_tpc(page, programs, count, gpu->pci, tpc);
	for (int i = 0; i < count; i++) {
		if (programs[i].rate >= 0)
			fprintf(page, "   %s %4.0f/s", programs[i].name, programs[i].rate);
	}
	fputc('\n', page);
}

void bars_draw(struct bars *bars, const struct activities *activities, FILE *page)
{
	struct program programs[BARS_PROGRAMS];
	const struct gpu_choices *chosen = &bars->tracks->chosen;
	int count = find_programs(bars, &activities->processes, programs, page);

	for (unsigned int i = 0; i < chosen->count && activities->span.is_known; i++)
		draw_line(programs, count, activities, chosen->choices[i].gpu, page);
}
