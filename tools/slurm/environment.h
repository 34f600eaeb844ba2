/*
 * The environment of a task.
 *
 * Programs get our library as from the command nvtaskset: its directory comes first in LD_LIBRARY_PATH, so that nothing of
 * the system's changes, and jobs without TPCs find the driver alone. Where every program carries it anyway (nvtaskset system
 * enable), and in containers, plugstack.conf says library=none. Which TPCs it is stays in the group's file: so changes reach
 * all tasks.
 */
#ifndef NVTASKSET_SLURM_ENVIRONMENT_H
#define NVTASKSET_SLURM_ENVIRONMENT_H

#include "nvtaskset.h"

#include <slurm/spank.h>

/* `pipes` of MPS; "": without. A CUDA_MPS_PIPE_DIRECTORY that the user has set stays. A `group` of "": the job has none. Then a
 * user's own group stays, but not that of another job, which has a file in `directory`. -1 with the reason. */
int environment_set(spank_t spank, const char *directory, const char *group, const char *library, const char *pipes,
                    struct nvtaskset_error *error);

#endif
