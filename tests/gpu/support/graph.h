/*
 * Shared by the tests of graphs: graphs of kernels that write where they ran, each with an output of its own, and two
 * partitions.
 */
#ifndef TESTS_GRAPH_H
#define TESTS_GRAPH_H

#include "first_gpu.h"

#define NODES 3

extern struct tpcset before, after; /* they have no TPC in common */
extern CUdeviceptr outputs[NODES];
extern CUgraphNode nodes[NODES]; /* of the graph that was made last */

/* Opens the GPU. For cmocka. */
int graph_set_up(void **state);

uint64_t graph_stale(void); /* how many nodes could not be refreshed so far */

/* A kernel that writes to outputs[number]. */
CUDA_KERNEL_NODE_PARAMS graph_parameters(unsigned int number);
void graph_add_node(CUgraph graph, unsigned int number, const CUgraphNode *previous);

/* NODES kernels in a row. */
CUgraph graph_make(void);
CUgraphExec graph_instantiate(CUgraph graph);

/* Launches it, with every output marked as not written, and waits. */
void graph_launch(CUgraphExec exec);

/* Where kernel `number` ran; the empty set if it did not. */
struct tpcset graph_ran(unsigned int number);

/* Launches it: the first `count` kernels run on all of `set`, and nowhere else. */
void graph_assert_ran(CUgraphExec exec, unsigned int count, const struct tpcset *set);

/* Changes the partition to this set. */
void graph_change(const struct tpcset *set);

/* Runs `use` in several threads at once, while the partition is `before` and `after` in turns. Each thread returns how many
 * of its launches were in neither, which must be none; it counts those of four launches with graph_count_strays. */
void graph_use_while_it_changes(void *(*use)(void *));
uintptr_t graph_count_strays(CUgraphExec exec, CUstream stream, CUdeviceptr output);

#endif
