/*
 * Sources of topologies that are used if neither a file nor the kernel driver has them. `root`, the root of the file
 * system, is "" except in tests.
 */
#ifndef NVTASKSET_TOPOLOGY_LOAD_H
#define NVTASKSET_TOPOLOGY_LOAD_H

#include "topology.h"

/* Loads from the cache of `nvtaskset measure`. -1: with an empty reason if it has no topology, else with what is wrong. */
int load_cache(const char *root, struct topology_list *list, struct error *error);

/* The same, after topology_load_rm has failed with the result `failure` and the reason in `error`. If the driver
 * refuses (TOPOLOGY_REFUSED), other sources are not used: an earlier measurement is not valid while MIG is on. -1 with
 * the reason, and what to do. */
int load_fallback(const char *root, int failure, struct topology_list *list, struct error *error);

#endif
