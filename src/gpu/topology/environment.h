/*
 * The topologies of the GPUs as one line of text, from the command to the programs that it starts or attaches to.
 * Otherwise each program would ask the kernel driver again, which takes time for each GPU (hardware.md,
 * "Topology").
 *
 * The line travels in the environment, or as the argument of attaching. It is only valid with the driver version that
 * it came from, and a line that was cut off is refused. It has no names, and no GPUs without a UUID. UUIDs identify
 * GPUs: a MIG instance has another UUID than its GPU.
 */
#ifndef NVTASKSET_TOPOLOGY_ENVIRONMENT_H
#define NVTASKSET_TOPOLOGY_ENVIRONMENT_H

#include "topology.h"

#define TOPOLOGY_ENVIRONMENT "NVTASKSET_GPUS"

/* Room for any line, with its NUL. */
#define TOPOLOGY_ENVIRONMENT_MAX (64 + TOPOLOGY_GPUS_MAX * (160 + TPCSET_MAX * 18))

/* Returns `text`, which is empty if there is nothing to pass on. `root` is put before /sys; "" except in tests. */
const char *topology_environment_write(const char *root, const struct topology_list *list,
                                       char text[TOPOLOGY_ENVIRONMENT_MAX]);

/* Reads a whole line. -1 if it comes from another driver version, or is not valid. */
int topology_environment_read(const char *root, const char *text, struct topology_list *list);

#endif
