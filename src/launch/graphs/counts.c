#include "counts.h"

#include "base/pointer_map.h"
#include "base/table.h"

#include <stdlib.h>
#include <string.h>

/* Kernels in one context. */
struct share {
	struct counts_place *place;
	struct kernels {
		uint64_t launched;
		uint64_t uncounted; /* not counted at the end */
	} each, once;               /* by each launch; besides, by this call */
};

/* A descriptor, by its address. */
struct node {
	const void *qmd;
	struct counts_place *place;
	enum graph_kernel kernel;
};

#define CONTEXTS 8 /* with kernels of one graph */

/* An entry stays in the table for later use: a reader may have found it. */
struct instance {
	struct table_entry entry;
	bool run_once;
	bool is_uploaded; /* all nodes are known */
	struct share shares[CONTEXTS];
	struct pointer_map nodes;
};

static struct table instances;

static struct instance *find(CUgraphExec exec)
{
	return exec ? TABLE_CONTENT(table_find(&instances, exec), struct instance, entry) : NULL;
}

/* --- instances -------------------------------------------------------------------------------------------------- */

/* An old instance with the same handle was destroyed with the context, unannounced. */
bool graph_counts_add(CUgraphExec exec, bool run_once)
{
	graph_counts_remove(exec);
	struct table_entry *vacant = table_find_vacant(&instances, exec);
	bool is_vacant = vacant && table_occupy(vacant, exec);
	struct instance *instance =
	    is_vacant ? TABLE_CONTENT(vacant, struct instance, entry) : calloc(1, sizeof *instance);

	if (instance)
		instance->run_once = run_once;
	if (instance && !is_vacant)
		table_add(&instances, &instance->entry, exec);
	return instance;
}

void graph_counts_remove(CUgraphExec exec)
{
	struct instance *instance = find(exec);

	if (instance) {
		pointer_map_clear(&instance->nodes);
		instance->is_uploaded = false;
		memset(instance->shares, 0, sizeof instance->shares);
		table_vacate(&instance->entry);
	}
}

void graph_counts_after_fork(void)
{
	memset(&instances, 0, sizeof instances);
}

/* --- what a call uploads ---------------------------------------------------------------------------------------- */

static bool have_room(struct frame *frame)
{
	size_t room = frame->written_room ? 2 * frame->written_room : 64;

	if (frame->written_count == frame->written_room) {
		struct graph_descriptor *list = realloc(frame->written, room * sizeof *list);

		if (!list)
			return false;
		frame->written = list;
		frame->written_room = room;
	}
	return true;
}

struct graph_descriptor *graph_counts_remember(struct launch *launch)
{
	struct frame *frame = &launch->frame;
	struct graph_descriptor *descriptor = NULL;

	if (have_room(frame)) {
		descriptor = &frame->written[frame->written_count++];
		*descriptor = (struct graph_descriptor){.qmd = launch->qmd, .place = launch->releases->place};
	}
	return descriptor;
}

void graph_counts_restore(struct frame *frame)
{
	for (size_t i = 0; i < frame->written_count; i++)
		qmd_restore(frame->written[i].qmd, &frame->written[i].saved);
	free(frame->written);
	frame->written = NULL;
	frame->written_count = frame->written_room = 0;
}

/* --- nodes ------------------------------------------------------------------------------------------------------ */

/* NULL if there are too many. */
static struct share *share_of(struct instance *instance, struct counts_place *place)
{
	struct share *share = instance->shares;

	while (share < instance->shares + CONTEXTS && share->place && share->place != place)
		share++;
	return share < instance->shares + CONTEXTS ? share : NULL;
}

/* `by`: 1, or -1 cast. */
static void change_kernels(struct kernels *kernels, const struct node *node, uint64_t by)
{
	kernels->launched += node->kernel != GRAPH_NO_KERNEL ? by : 0;
	kernels->uncounted += node->kernel == GRAPH_UNCOUNTED ? by : 0;
}

/* A first upload counts for each launch; a later descriptor, for this call. False without memory, or without room. */
static bool put_node(struct instance *instance, const struct node *new)
{
	struct share *share = share_of(instance, new->place);
	struct node *node = pointer_map_find(&instance->nodes, sizeof *node, new->qmd);
	bool is_once = !node && instance->is_uploaded;

	if (share && node)
		change_kernels(&share_of(instance, node->place)->each, node, (uint64_t)-1);
	else if (share && !is_once)
		node = pointer_map_add(&instance->nodes, sizeof *node, new->qmd);
	if (!share || (!node && !is_once))
		return false;
	share->place = new->place;
	if (node)
		*node = *new;
	change_kernels(is_once ? &share->once : &share->each, new, 1);
	return true;
}

enum counts_kind graph_counts_kind(const struct frame *frame)
{
	const struct instance *instance = find(frame->exec);
	bool run_once = frame->exec ? instance && instance->run_once : frame->runs_once;

	return run_once ? COUNTS_NODE : COUNTS_UNHEARD;
}

void graph_counts_uploaded(CUgraphExec exec, const struct frame *frame)
{
	struct instance *instance = find(exec);

	for (size_t i = 0; instance && i < frame->written_count; i++) {
		const struct graph_descriptor *written = &frame->written[i];
		const struct node node = {.qmd = written->qmd, .place = written->place, .kernel = written->kernel};

		if (node.place && !put_node(instance, &node))
			counts_note_gap(node.place, COUNTS_NO_MEMORY);
	}
}

bool graph_counts_call_ended(CUgraphExec exec, bool has_run)
{
	struct instance *instance = find(exec);

	for (int i = 0; instance && i < CONTEXTS && instance->shares[i].place; i++) {
		struct share *share = &instance->shares[i];
		uint64_t uncounted = share->each.uncounted + share->once.uncounted;

		if (has_run)
			counts_launch_nodes(share->place, share->each.launched + share->once.launched);
		if (has_run && uncounted > 0)
			counts_note_uncounted(share->place, COUNTS_NODE, uncounted);
		memset(&share->once, 0, sizeof share->once);
	}
	if (instance && has_run)
		instance->is_uploaded = true;
	return instance;
}
