/*
 * Which graphs a kernel may have waited for: those that were launched between it and the kernel before it in its
 * stream. A graph's end is that of the node that ended last when something was learnt of it, whose timestamp each
 * launch writes anew (state/kernels/timestamps.h). So what is not known is: when a graph has ended whose branches now
 * end in another order, and of copies and calls of the processor behind its last kernel, that they were there; and that
 * a graph was launched at the same time as the kernel, by another thread.
 *
 * The ring may be a hostile process's: whatever stands there, the work is bounded.
 */
#ifndef NVTASKSET_MONITOR_ESTIMATE_BEHIND_H
#define NVTASKSET_MONITOR_ESTIMATE_BEHIND_H

#include "node_timestamps.h"
#include "state/kernels/timestamps_read.h"
#include "times.h"

/* What was learnt of the instance that was launched; NULL: nothing. */
typedef const struct node_order *behind_order(void *data, const struct timestamps_event *graph);

/* Writes for a kernel that has ended what times_estimate wants to know of graphs before it. */
void behind_find(struct times_kernel *kernel, const struct timestamps *ring, const struct timestamps_event *event,
                 behind_order *order_of, void *data);

#endif
