#include "timestamps.h"

#include "base/clock.h"
#include "base/pointer_map.h"
#include "base/table.h"
#include "driver/gpus.h"
#include "driver/releases.h"
#include "launch/space/epoch.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Nodes of a graph with a cell at once. Nodes of a larger graph take turns, to leave cells for other graphs. */
#define NODES_AT_ONCE (TIMESTAMPS_NODES / 2)

/* In each turn the nodes uploaded first and last have a cell: of nodes in a row, the first and the last of the graph
 * are there (hardware.md, "Graphs"). The nodes of the turn have a break on each side. */
#define NODES_AT_EDGE 64
#define NODES_OF_TURN (NODES_AT_ONCE - 2 * NODES_AT_EDGE - 2)

/* An instance is uploaded for a turn once a second at most, and all together 1 % of the time: a node takes 1.5 us. */
#define TURN_NS UINT64_C(1000000000)
#define TURN_NS_FOR_NODE UINT64_C(150000)

#define SHARES_MAX 256

/* A node, by the address of the descriptor. */
struct node {
	const void *qmd;
	const void *function; /* NULL: the driver's own */
	uint64_t number; /* of the cell; 0: no cell */
};

/* How many nodes are kernels of a function. */
struct share {
	const void *function;
	unsigned int nodes;
	uint64_t number; /* of the share's record; 0: no record yet */
};

/* An instance, and the cells of the nodes. The entry stays in the table for later use: a thread may have found it. */
struct instance {
	struct table_entry entry;
	struct timestamps *timestamps; /* of the first node; all nodes must lie there */
	uint64_t first, last, end; /* as for timestamps_add_graph */
	struct pointer_map nodes; /* uploaded since the last upload of the whole */
	unsigned int before;      /* the number of nodes at the upload before, or 0 */
	unsigned int own;        /* of the kernels, the driver's */
	unsigned int cell_index; /* the node with the last cell */
	unsigned int turn; /* the first node of the turn */
	uint64_t turned_ns;
	struct share shares[SHARES_MAX];
	unsigned int share_count;
};

static struct table instances;

/* Some nodes may have a cell. */
static atomic_bool has_stamped;

static _Atomic uint64_t next_turn_ns;

static unsigned int nodes_of(const struct instance *instance)
{
	return (unsigned int)instance->nodes.count;
}

static struct instance *find(CUgraphExec exec)
{
	return TABLE_CONTENT(table_find(&instances, exec), struct instance, entry);
}

/* NULL if there is no memory. */
static struct instance *find_or_add(CUgraphExec exec)
{
	struct instance *instance = find(exec);
	struct table_entry *vacant = instance ? NULL : table_find_vacant(&instances, exec);

	if (!instance && vacant && table_occupy(vacant, exec)) {
		instance = TABLE_CONTENT(vacant, struct instance, entry);
	} else if (!instance) {
		instance = calloc(1, sizeof *instance);
		if (instance)
			table_add(&instances, &instance->entry, exec);
	}
	return instance;
}

static void forget_nodes(struct instance *instance)
{
	pointer_map_clear(&instance->nodes);
	instance->timestamps = NULL;
	instance->first = instance->last = instance->end = 0;
	instance->own = instance->cell_index = instance->share_count = 0;
}

void timestamps_graph_renewed(CUgraphExec exec)
{
	struct instance *instance = find(exec);

	/* Nothing is known of an upload while nobody looked. */
	if (instance) {
		instance->before = nodes_of(instance) > 0 ? nodes_of(instance) : instance->before;
		forget_nodes(instance);
	}
}

void timestamps_graph_destroyed(CUgraphExec exec)
{
	struct instance *instance = find(exec);

	if (instance) {
		forget_nodes(instance);
		instance->before = instance->turn = 0;
		instance->turned_ns = 0;
		table_vacate(&instance->entry);
	}
}

void timestamps_graphs_after_fork(void)
{
	memset(&instances, 0, sizeof instances);
	atomic_store(&has_stamped, false);
	atomic_store(&next_turn_ns, 0);
}

/* --- one node --------------------------------------------------------------------------------------------------- */

/* The last place is for all functions without room. */
static void count_node(struct instance *instance, const void *function, unsigned int by)
{
	static const char others;
	unsigned int place = 0;

	if (!function) {
		instance->own += by;
		return;
	}
	while (place < instance->share_count && instance->shares[place].function != function)
		place++;
	if (place >= SHARES_MAX - 1) {
		place = SHARES_MAX - 1;
		function = &others;
	}
	if (place >= instance->share_count) {
		instance->shares[place] = (struct share){.function = function};
		instance->share_count = place + 1;
	}
	instance->shares[place].nodes += by;
}

/* How many there are is known from the last upload as a whole. */
static bool has_turn(const struct instance *instance, unsigned int index)
{
	if (instance->before <= NODES_AT_ONCE)
		return index < NODES_AT_ONCE;
	return index < NODES_AT_EDGE || index + NODES_AT_EDGE >= instance->before ||
	       (index >= instance->turn && index - instance->turn < NODES_OF_TURN);
}

/* The cell of a node at the first upload. Number 0: no cell. */
static struct timestamps_cell new_cell(struct instance *instance, const struct timestamps_node *node,
                                       unsigned int index)
{
	struct timestamps_cell cell = {.number = 0};

	if (!has_turn(instance, index))
		return cell;
	if (index > 0 && instance->cell_index != index - 1)
		timestamps_add_node(instance->timestamps,
		                    &(const struct timestamps_node){.exec = node->exec, .nodes = 1});
	cell = timestamps_add_node(instance->timestamps, node);
	if (index == 0)
		instance->first = cell.number;
	instance->last = cell.number;
	instance->cell_index = index;
	return cell;
}

/* A node changed by the application keeps the cell, and the place among the nodes. */
static struct timestamps_cell same_cell(const struct instance *instance, const struct timestamps_node *node,
                                        uint64_t number)
{
	bool has_cell = number != 0 && timestamps_set_node(instance->timestamps, number, node);

	return has_cell ? timestamps_node_cell(number) : (struct timestamps_cell){.number = 0};
}

/* Number 0: no cell. */
static struct timestamps_cell put_node(struct instance *instance, const void *qmd, const struct timestamps_node *node,
                                       bool has_slot)
{
	struct node *place = pointer_map_find(&instance->nodes, sizeof *place, qmd);
	bool is_known = place;
	struct timestamps_cell cell = {.number = 0};

	if (!is_known)
		place = pointer_map_add(&instance->nodes, sizeof *place, qmd);
	if (is_known)
		count_node(instance, place->function, -1U);
	if (place && has_slot)
		cell = is_known ? same_cell(instance, node, place->number)
		                : new_cell(instance, node, nodes_of(instance) - 1);
	if (place) {
		*place = (struct node){.qmd = qmd, .function = node->function, .number = cell.number};
		count_node(instance, node->function, 1);
	}
	return cell;
}

void timestamps_graph_node(const struct launch *launch, unsigned int tpcs, struct qmd_change *change)
{
	struct timestamps *timestamps = timestamps_are_on() ? launch->releases->timestamps : NULL;
	struct instance *instance = timestamps && launch->frame.exec ? find_or_add(launch->frame.exec) : NULL;

	if (!instance || !qmd_is_known(launch->gpu->family, launch->qmd) ||
	    (instance->timestamps && instance->timestamps != timestamps))
		return;
	bool is_own = qmd_has_no_blocks(launch->gpu->family, launch->qmd);
	const struct qmd_place *place = timestamps_place(launch);
	const struct timestamps_node node = {
		.exec = launch->frame.exec,
		.function = is_own ? NULL : launch->function,
		.tpcs = tpcs,
		.grid = place ? qmd_grid_of(place, launch->qmd) : (struct qmd_grid){0},
	};

	instance->timestamps = timestamps;
	if (!is_own)
		timestamps_write_name(timestamps, launch->function);
	struct timestamps_cell cell = put_node(instance, launch->qmd, &node, place);

	if (cell.number != 0) {
		change->stamping = &launch->releases->stamping;
		change->timestamp_at = launch->releases->timestamps_at + cell.at;
		change->timestamp = cell.number;
		atomic_store_explicit(&has_stamped, true, memory_order_relaxed);
	}
}

/* --- launches of graphs ----------------------------------------------------------------------------------------- */

/* Whether the end of a launch will be known: all possible last nodes have a cell. */
static bool tells_end(const struct instance *instance)
{
	return instance->first != 0 && instance->cell_index == nodes_of(instance) - 1 &&
	       timestamps_has_node(instance->timestamps, instance->first) &&
	       timestamps_has_node(instance->timestamps, instance->last);
}

static bool may_turn(struct instance *instance, uint64_t now)
{
	uint64_t next = atomic_load_explicit(&next_turn_ns, memory_order_relaxed);
	bool has_all = nodes_of(instance) <= NODES_AT_ONCE && tells_end(instance);

	return instance->timestamps && !has_all && now - instance->turned_ns >= TURN_NS && now >= next &&
	       atomic_compare_exchange_strong(&next_turn_ns, &next, now + nodes_of(instance) * TURN_NS_FOR_NODE);
}

/* The next nodes, and the last nodes once more: the time of a node is known with the node in front. */
static void turn(struct instance *instance, uint64_t now)
{
	bool had_turn = instance->before > NODES_AT_ONCE;

	instance->turned_ns = now;
	instance->turn =
	    had_turn && instance->turn + NODES_OF_TURN < nodes_of(instance) ? instance->turn + NODES_OF_TURN - 1 : 0;
}

/* Nobody looks any more: graphs are uploaded again, without releases. */
bool timestamps_graph_begins(const struct call *call, CUgraphExec exec)
{
	bool is_on = timestamps_are_on(), must_upload = false;
	uint64_t began_ns = is_on ? process_clock_ns() : 0;

	call->frame->began_ns = began_ns;
	if (is_on) {
		struct instance *instance = find(exec);

		must_upload = instance && may_turn(instance, began_ns);
		if (must_upload)
			turn(instance, began_ns);
	} else if (atomic_load_explicit(&has_stamped, memory_order_relaxed) && atomic_exchange(&has_stamped, false)) {
		epoch_raise_masks();
	}
	return must_upload;
}

/* Says how many nodes each function has, behind the nodes. */
static void tell_shares(struct instance *instance, CUgraphExec exec)
{
	instance->end = instance->last;
	for (unsigned int i = 0; i < instance->share_count; i++) {
		struct share *share = &instance->shares[i];
		const struct timestamps_node node = {.exec = exec, .function = share->function, .nodes = share->nodes};

		/* Behind the nodes also where more nodes have come. */
		bool is_told =
		    share->number > instance->last && timestamps_set_node(instance->timestamps, share->number, &node);

		if (!is_told && share->nodes > 0)
			share->number = timestamps_add_node(instance->timestamps, &node).number;
		if (share->number > instance->end)
			instance->end = share->number;
	}
}

static void add_launch(const struct instance *instance, const struct call *call, CUgraphExec exec)
{
	bool is_known = tells_end(instance);

	timestamps_add_graph(instance->timestamps,
	                     &(const struct timestamps_graph){
				 .launched_ns = call->frame->began_ns,
				 .exec = exec,
				 .stream = timestamps_stream(call->frame, calls_stream_of_graph(call)),
				 .first = is_known ? instance->first : 0,
				 .last = is_known ? instance->last : 0,
				 .end = is_known ? instance->end : 0,
				 .kernels = nodes_of(instance) - instance->own,
			     });
}

void timestamps_graph_ended(const struct call *call, CUgraphExec exec)
{
	struct instance *instance = call->frame->began_ns != 0 ? find(exec) : NULL;

	if (instance && instance->timestamps) {
		tell_shares(instance, exec);
		if (calls_run_graph(call->id) && *call->result == CUDA_SUCCESS)
			add_launch(instance, call, exec);
	}
	call->frame->began_ns = 0;
}
