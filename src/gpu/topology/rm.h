/*
 * Asks NVIDIA's kernel driver for the TPCs of each GPU, by the calls of facts.md, "Topology".
 *
 * This runs in other people's processes too: nothing is allocated. The descriptors are closed before it returns, and
 * with them the kernel frees all that was made through them.
 */
#ifndef NVTASKSET_TOPOLOGY_RM_H
#define NVTASKSET_TOPOLOGY_RM_H

#include "rm_client.h"
#include "topology.h"

/* topology_load_rm with other system calls. */
int rm_load(const struct rm_system *system, const struct topology_wanted *wanted, struct topology_list *list,
            struct error *error);

#endif
