/*
 * Asks NVIDIA's kernel driver which GPU has which TPC, by the calls of docs/facts.md, "Topology".
 *
 * It runs in other people's processes too: no allocation; the descriptors are closed before it returns, and
 * with them the kernel frees everything that was made through them.
 */
#ifndef NVTASKSET_TOPOLOGY_RM_H
#define NVTASKSET_TOPOLOGY_RM_H

#include "rm_client.h"
#include "topology.h"

/* topology_load_rm on another system than this one. */
int rm_load(const struct rm_system *system, const struct topology_wanted *wanted, struct topology_list *list,
            struct error *error);

#endif
