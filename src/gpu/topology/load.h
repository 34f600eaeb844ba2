/*
 * Where topologies come from when neither a file nor the kernel driver has them, with the file system's root as
 * tests want it.
 */
#ifndef NVTASKSET_TOPOLOGY_LOAD_H
#define NVTASKSET_TOPOLOGY_LOAD_H

#include "topology.h"

/* The cache, with the GPCs that nvdebug adds; nvdebug alone. -1: with an empty reason where neither has anything to
 * say, else with what is wrong. */
int load_untold(const char *root, struct topology_list *list, struct error *error);

/* The same after an answer below 0 of topology_load_rm, whose reason stands in `error`. What the kernel driver refuses
 * (TOPOLOGY_REFUSED) is not to be had behind its back: what was measured before does not hold while MIG is on. -1 with
 * the reason, and what to do. */
int load_otherwise(const char *root, int told, struct topology_list *list, struct error *error);

/* The chip's GPCs where nvdebug tells them, for a machine of one GPU; nothing happens where it does not. */
void load_gpcs(const char *root, struct topology_list *list);

#endif
