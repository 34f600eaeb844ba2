/* Shared by the tests of graphs: graphs of kernels that write where they ran, each with an output of its own, and two
 * partitions. */
#ifndef TESTS_GRAPH_H
#define TESTS_GRAPH_H

#include "first_gpu.h"

#define NODES 3

extern struct tpcset before, after; /* they have no TPC in common */
extern CUdeviceptr outputs[NODES];
extern CUgraphNode nodes[NODES]; /* of the graph that was made last */

/* Opens the GPU. For cmocka. */
int graph_set_up(void **state);

/* A kernel that writes to outputs[number]. */
CUDA_KERNEL_NODE_PARAMS graph_parameters(unsigned int number);
void graph_add_node(CUgraph graph, unsigned int number, const CUgraphNode *previous);

/* NODES kernels in a row. */
CUgraph graph_make(void);
CUgraphExec graph_instantiate(CUgraph graph);
CUgraphExec graph_instantiate_with(CUgraph graph, uint64_t flags);

/* `graph` may be NULL: it has gone before. */
void graph_end(CUgraphExec exec, CUgraph graph);

/* Launches it, and waits. */
void graph_replay(CUgraphExec exec);

/* The same, with every output marked as not written. */
void graph_launch(CUgraphExec exec);

/* Where kernel `number` ran; the empty set if it did not. */
struct tpcset graph_ran(unsigned int number);
void graph_assert_in(unsigned int number, struct tpcset set);

/* Launches it: the first `count` kernels run on all of `set`, and nowhere else. */
void graph_assert_ran(CUgraphExec exec, unsigned int count, struct tpcset set);

/* Changes the partition to this set, and launches it: its first `count` kernels run there. */
void graph_assert_follows(CUgraphExec exec, unsigned int count, struct tpcset set);

/* Launches it after a change to `set`: `refreshed` nodes are uploaded again, `stale` nodes cannot be. Returns how many
 * launches the driver announced, at least. */
uint64_t graph_launch_changed(CUgraphExec exec, struct tpcset set, uint64_t refreshed, uint64_t stale);

#endif
