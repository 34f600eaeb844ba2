/*
 * A job's TPCs: its group gets as many as the job has shards.
 */
#ifndef NVTASKSET_SLURM_CLAIM_H
#define NVTASKSET_SLURM_CLAIM_H

#include "config.h"
#include "jobs.h"
#include "nvtaskset.h"
#include "options.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

/* Finds out what the job has and claims it, once for all its steps. A job that is
 * ending, or that the controller has forgotten, may still have some of its TPCs: so this waits for them, as long as plugstack.conf
 * says. -1 with the reason; NO_ROOM if too few
 * TPCs became free. */
int claim(const struct job *job, unsigned int user, const struct config *config, const struct options *options,
          struct jobs_note *note, struct nvtaskset_error *error);

/*
 * A job's control group, where Slurm uses these (proctrack/cgroup). The command finds programs by it that have lost their
 * environment.
 */

/* Of this process, which is a step of the job. NULL if it is in none. */
const char *cgroup_find(uint32_t job, char path[PATH_MAX]);

/* Pure, for tests: the job's part of a line of /proc/PID/cgroup, such as "0::/system.slice/slurmstepd.scope/job_7/step_0/slurm" or
 * "6:freezer:/slurm/uid_0/job_7". False if it is not in there. */
bool cgroup_read(uint32_t job, const char *line, char path[PATH_MAX]);

/*
 * The GPUs, as Slurm counts them and as nvtaskset does.
 *
 * Slurm counts the files of gres.conf, /dev/nvidia0 and so on, whose numbers are the driver's. nvtaskset counts by PCI
 * addresses. On most machines that is the same; where it is not, the driver says which is which, or plugstack.conf.
 */

/* `order`: bus ids in Slurm's order, or "". -1 with the reason if there is no such GPU. */
int gpus_find(const struct nvtaskset_topology *topology, const char *order, unsigned int slurms, unsigned int *gpu,
              struct nvtaskset_error *error);

#endif
