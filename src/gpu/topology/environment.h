/*
 * What a command knows of the GPUs, for the programs that it starts or attaches to: to ask the kernel driver once more would
 * take each of them 1 to 3 ms a GPU (docs/hardware.md). It travels in one line, in the environment or by hand, and counts
 * only with the driver that it came from; what is cut off somewhere is refused. Names do not travel, nor GPUs without a
 * UUID, by which one is known again: a MIG instance has another than its GPU.
 */
#ifndef NVTASKSET_TOPOLOGY_HANDOVER_H
#define NVTASKSET_TOPOLOGY_HANDOVER_H

#include "topology.h"

#define HANDOVER_ENVIRONMENT "NVTASKSET_GPUS"

/* Room for any line, with its end. */
#define HANDOVER_TEXT (64 + TOPOLOGY_GPUS_MAX * (160 + TPCSET_MAX * 18))

/* `root` is "" but in tests: it goes before /sys. Returns `text`, which is empty where there is nothing to tell. */
const char *handover_write(const char *root, const struct topology_list *list, char text[HANDOVER_TEXT]);

/* The whole line or nothing: -1 where it is from another driver, or no such line. */
int handover_read(const char *root, const char *text, struct topology_list *list);

#endif
