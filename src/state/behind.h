/*
 * Which graphs a kernel may have waited for: those that were launched between it and the kernel before it in its stream. Their
 * ends are those of nodes, whose stamps each launch of the graph writes anew (stamps.h).
 *
 * The ring may be a hostile process's: whatever stands there, the work is bounded.
 */
#ifndef NVTASKSET_BEHIND_H
#define NVTASKSET_BEHIND_H

#include "node_stamps.h"
#include "stamps_read.h"
#include "times.h"

/* What was learnt of the instance that was launched; NULL: nothing. */
typedef const struct node_order *behind_order(void *data, const struct stamps_event *graph);

/* Writes for a kernel that has ended what times_estimate wants to know of graphs before it. */
void behind_find(struct times_kernel *kernel, const struct stamps *ring, const struct stamps_event *event,
                 behind_order *order_of, void *data);

#endif
