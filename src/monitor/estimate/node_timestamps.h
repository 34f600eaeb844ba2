/*
 * The timestamps of a graph's nodes, in the order of time, and which launch of the graph they tell the end of.
 *
 * Nodes are not uploaded in the order in which they run, and each launch writes over the timestamps of the one before.
 * Where the driver has a kernel of its own in front, its timestamp tells the two apart: what is older is of the launch
 * before.
 *
 * The memory may be a hostile process's: whatever stands there, the work is bounded.
 */
#ifndef NVTASKSET_MONITOR_ESTIMATE_NODE_TIMESTAMPS_H
#define NVTASKSET_MONITOR_ESTIMATE_NODE_TIMESTAMPS_H

#include "state/kernels/timestamps_read.h"
#include "times.h"

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

#endif
