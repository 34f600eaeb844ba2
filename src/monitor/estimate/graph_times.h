/*
 * When the kernels and the launches of graphs were on the GPU, by their timestamps: in three parts.
 *
 * The memory may be a hostile process's: the work is bounded for any content.
 */
#pragma once

#include "state/kernels/timestamps_read.h"
#include "times.h"

/* --- the nodes of one graph --------------------------------------------------------------------------------------- */

/*
 * The timestamps of a graph's nodes, in the order of time, and the launch whose end they tell.
 *
 * Nodes are not uploaded in the order of running, and each launch overwrites the timestamps of the launch before. A
 * kernel of the driver's own in front tells both apart: an older timestamp is of the launch before.
 */

/* Learnt of an instance from its launches. All zero: nothing yet. */
struct node_order {
	uint64_t front;  /* the driver's own kernel in front, if the driver has several; 0: unknown */
	uint64_t latest; /* the node that ends last; 0: unknown */
};

struct node_timestamps {
	struct timestamps_node_event nodes[TIMESTAMPS_NODES]; /* with a timestamp: the oldest first */
	unsigned int count;
	unsigned int waiting; /* without a timestamp yet */
	bool has_all;         /* each node of the graph has a cell */
	unsigned int front;   /* the index of the driver's own kernel in front; UINT_MAX: unknown */
	unsigned int newer;   /* the index of the first node of a launch that has not ended; 0: no such node */
	uint64_t end;         /* the last timestamp of the last launch known to have ended */
	uint64_t begin;       /* the timestamp of the kernel in front of the same launch; 0: unknown */
	unsigned int tpcs;    /* of the last node */
};

/* Reads the nodes with the numbers `first` to `last`, fewer than TIMESTAMPS_NODES. `is_idle`: no launch of the instance
 * runs. False if no launch is known to have ended. */
bool graph_times_read_nodes(struct node_timestamps *timestamps, const struct timestamps *ring, uint64_t exec,
                            uint64_t first, uint64_t last, bool is_idle, struct node_order *order);

/* How long the node with the index took, behind the node that ended before. False if not known. */
bool graph_times_node_duration(const struct node_timestamps *timestamps, unsigned int index,
                               const struct times_calibration *calibration, uint64_t *duration_ns);

/* From the begin of the first kernel to the end of the last; 0 if not known. */
uint64_t graph_times_node_length(const struct node_timestamps *timestamps, const struct times_calibration *calibration);

/* --- the launches of one graph ------------------------------------------------------------------------------------ */

/*
 * When the launches of one graph were on the GPU: an estimate.
 *
 * Each launch of a graph overwrites the timestamps of the launch before. A reader that looks now and then sees the end
 * of one launch of many, and the launch's length. Launches in between are taken to follow each other, and to be as long
 * as the launches that were seen.
 *
 * Times are the processor's. Nothing here reads a clock, or foreign memory.
 */

#define REPLAYS_WAITING 2048

/* All zero: a graph that was never launched. */
struct replays {
	uint64_t launched[REPLAYS_WAITING]; /* not ended: number n is at n % REPLAYS_WAITING */
	uint64_t first, next;
	uint64_t end;       /* of the last launch that has ended; 0: no end yet */
	uint64_t length_ns; /* of one launch; 0: not known yet */
};

/* The graph was launched. False if too many launches wait: the launch is not taken into account. */
bool graph_times_replays_launch(struct replays *replays, uint64_t launched_ns);

/* The end of the graph's last kernel was seen, `length_ns` after the launch's begin, 0 if not known. `none_is_left`:
 * nothing of the graph is on the GPU. Adds the busy times. Returns how many launches have ended. */
uint64_t graph_times_replays_see_end(struct replays *replays, struct times *times, const struct times_ways *ways,
                                     uint64_t end, uint64_t length_ns, bool none_is_left, unsigned int tpcs);

/* The remaining launches run, or wait, at `now`. */
void graph_times_replays_see_running(const struct replays *replays, struct times *times, const struct times_ways *ways,
                                     uint64_t now, unsigned int tpcs);

/* The number of the first launch made at `time` or later, or of the next launch. */
uint64_t graph_times_replays_after(const struct replays *replays, uint64_t time);

/* Launches with a smaller number have ended, at unknown times. Returns how many. */
uint64_t graph_times_replays_drop(struct replays *replays, uint64_t number);

/* --- the graphs before a kernel ----------------------------------------------------------------------------------- */

/*
 * The graphs that a kernel may have waited for: launched after the kernel before in the same stream. A graph's end is
 * the end of its last node, as learnt before; each launch writes the node's timestamp anew
 * (state/kernels/timestamps.h). So three facts stay unknown: the end of a graph whose branches now end in another
 * order; copies and calls of the processor behind the graph's last kernel; and a launch of a graph at the same time as
 * the kernel's, by another thread.
 */

/* The learnt order of the launched instance; NULL: nothing learnt. */
typedef const struct node_order *graphs_before_order(void *data, const struct timestamps_event *graph);

/* Writes the graphs before a kernel that has ended, for times_add. */
void graph_times_before(struct times_kernel *kernel, const struct timestamps *ring,
                        const struct timestamps_event *event, graphs_before_order *order_of, void *data);
