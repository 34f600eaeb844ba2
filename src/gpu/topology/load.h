/*
 * Sources of topologies after the file and the kernel driver. `root`, the root of the file system, is "" except in
 * tests.
 */
#ifndef NVTASKSET_TOPOLOGY_LOAD_H
#define NVTASKSET_TOPOLOGY_LOAD_H

#include "topology.h"

/* Loads from the cache of `nvtaskset measure`. -1 with an empty reason for an empty cache, else with the reason. */
int load_cache(const char *root, struct topology_list *list, struct error *error);

/* The same, after topology_load_rm has failed with the result `failure` and the reason in `error`. If the driver
 * refuses (TOPOLOGY_REFUSED), no other source is used: an earlier measurement is invalid while MIG is on. -1 with the
 * reason and the remedy. */
int load_fallback(const char *root, int failure, struct topology_list *list, struct error *error);

#endif
