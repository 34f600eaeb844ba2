/*
 * The GPUs, as Slurm counts them and as nvtaskset does.
 *
 * Slurm counts the files of gres.conf, /dev/nvidia0 and so on, whose numbers are the driver's. nvtaskset counts by PCI
 * addresses. On most machines that is the same; where it is not, the driver says which is which, or plugstack.conf.
 */
#ifndef NVTASKSET_SLURM_GPUS_H
#define NVTASKSET_SLURM_GPUS_H

#include "nvtaskset.h"

/* `order`: bus ids in Slurm's order, or "". -1 with the reason if there is no such GPU. */
int gpus_find(const struct nvtaskset_topology *topology, const char *order, unsigned int slurms, unsigned int *gpu,
              struct nvtaskset_error *error);

#endif
