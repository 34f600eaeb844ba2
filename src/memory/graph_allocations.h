/*
 * How many bytes the nodes of a graph's instance allocate. Graphs are looked at only once the program has made a node
 * that allocates.
 *
 * Any thread.
 */
#ifndef NVTASKSET_MEMORY_GRAPH_ALLOCATIONS_H
#define NVTASKSET_MEMORY_GRAPH_ALLOCATIONS_H

#include "driver/calls.h"

#include <stdbool.h>
#include <stdint.h>

/* The program has made a node with an allocation. */
void graph_allocations_expect(void);
bool graph_allocations_exist(void);

/* A call that instantiates has succeeded. */
void graph_allocations_instantiated(const struct call *call);

/* 0: none */
uint64_t graph_allocations_of(CUgraphExec exec);

void graph_allocations_after_fork(void);

#endif
