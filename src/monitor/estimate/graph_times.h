/*
 * When the kernels and the launches of graphs were on the GPU, by their timestamps: in three parts.
 *
 * The memory may be a hostile process's: whatever stands there, the work is bounded.
 */
#ifndef NVTASKSET_MONITOR_ESTIMATE_GRAPH_TIMES_H
#define NVTASKSET_MONITOR_ESTIMATE_GRAPH_TIMES_H

#include "state/kernels/timestamps_read.h"
#include "times.h"

/* --- the nodes of one graph --------------------------------------------------------------------------------------- */

/*
 * The timestamps of a graph's nodes, in the order of time, and which launch of the graph they tell the end of.
 *
 * Nodes are not uploaded in the order in which they run, and each launch writes over the timestamps of the one before.
 * Where the driver has a kernel of its own in front, its timestamp tells the two apart: what is older is of the launch
 * before.
 */

/* What was learnt of an instance from its launches. All zero: nothing yet. */
struct node_order {
	uint64_t
	    front; /* the driver's own kernel in front of the others, where there are more of its own; 0: unknown */
	uint64_t latest; /* the one that ends last; 0: unknown */
};

struct node_timestamps {
	struct timestamps_node_event nodes[TIMESTAMPS_NODES]; /* those that have a timestamp: the oldest first */
	unsigned int count;
	unsigned int waiting; /* have none yet */
	bool has_all;         /* each node of the graph has a cell */
	unsigned int
	    front; /* the index of the driver's own kernel in front; UINT_MAX: there is none, or it is not known */
	unsigned int newer;   /* the index of the first node of a launch that has not ended; 0: there is none */
	uint64_t end;         /* the last timestamp of the last launch that is known to have ended */
	uint64_t begin;       /* the timestamp of the kernel in front of the same launch; 0: unknown */
	unsigned int tpcs;    /* that its last node could use */
};

/* Those of the instance whose nodes have the numbers `first` to `last`, fewer than TIMESTAMPS_NODES. `is_idle`: none of
 * its launches runs. False if no launch is known to have ended. */
bool node_timestamps_read(struct node_timestamps *timestamps, const struct timestamps *ring, uint64_t exec,
                          uint64_t first, uint64_t last, bool is_idle, struct node_order *order);

/* How long the node with this index took, if that is known: behind the one that ended before it. */
bool node_timestamps_duration(const struct node_timestamps *timestamps, unsigned int index,
                              const struct times_calibration *calibration, uint64_t *duration_ns);

/* From the begin of the first kernel to the end of the last one; 0 if that is not known. */
uint64_t node_timestamps_length(const struct node_timestamps *timestamps, const struct times_calibration *calibration);

/* --- the launches of one graph ------------------------------------------------------------------------------------ */

/*
 * When the launches of one graph were on the GPU: an estimate.
 *
 * Each launch of a graph writes its timestamps over those of the launch before. A reader who looks now and then sees
 * the end of one launch of many, and how long it took. Between two that were seen, the launches one after the other are
 * taken to be as long as those that were seen.
 *
 * Times are the processor's. Nothing here reads a clock, or memory of others.
 */

#define REPLAYS_WAITING 2048

/* All zero is a graph that was never launched. */
struct replays {
	uint64_t launched[REPLAYS_WAITING]; /* those that have not ended: number n is at n % REPLAYS_WAITING */
	uint64_t first, next;
	uint64_t end;       /* of the last one that has ended; 0: none has */
	uint64_t length_ns; /* of one launch; 0: not known yet */
};

/* It was launched. False if too many wait: this one is not taken into account. */
bool replays_launch(struct replays *replays, uint64_t launched_ns);

/* The end of its last kernel was seen, `length_ns` after the begin of that launch, 0 if that is not known. `none_is_left`:
 * nothing of the graph is on the GPU. Adds when it was busy. Returns how many launches have ended. */
uint64_t replays_see_end(struct replays *replays, struct times *times, const struct times_ways *ways, uint64_t end,
                         uint64_t length_ns, bool none_is_left, unsigned int tpcs);

/* Those that are left run, or wait, at `now`. */
void replays_see_running(const struct replays *replays, struct times *times, const struct times_ways *ways, uint64_t now,
                         unsigned int tpcs);

/* The number of the first launch that was not made before this time, or that of the next one. */
uint64_t replays_after(const struct replays *replays, uint64_t time);

/* Those with a smaller number have ended, and it is not known when. Returns how many. */
uint64_t replays_drop(struct replays *replays, uint64_t number);

/* --- the graphs before a kernel ----------------------------------------------------------------------------------- */

/*
 * Which graphs a kernel may have waited for: those that were launched between it and the kernel before it in its
 * stream. A graph's end is that of the node that ended last when something was learnt of it, whose timestamp each
 * launch writes anew (state/kernels/timestamps.h). So what is not known is: when a graph has ended whose branches now
 * end in another order, and of copies and calls of the processor behind its last kernel, that they were there; and that
 * a graph was launched at the same time as the kernel, by another thread.
 */

/* What was learnt of the instance that was launched; NULL: nothing. */
typedef const struct node_order *graphs_before_order(void *data, const struct timestamps_event *graph);

/* Writes for a kernel that has ended what times_add wants to know of graphs before it. */
void graphs_before_find(struct times_kernel *kernel, const struct timestamps *ring, const struct timestamps_event *event,
                 graphs_before_order *order_of, void *data);

#endif
