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

/* Finds out what the job has and claims it, once for all its steps. A job that is ending, or that the controller has forgotten, may
 * still have some of its TPCs: so this waits for them, as long as plugstack.conf says. -1 with the reason; NO_ROOM if too few TPCs
 * became free. */
int claim(const struct job *job, unsigned int user, const struct config *config, const struct options *options,
          struct jobs_note *note, struct nvtaskset_error *error);

/* Pure, for tests: the job's control group, where Slurm uses these (proctrack/cgroup), in a line of /proc/PID/cgroup, such as
 * "0::/system.slice/slurmstepd.scope/job_7/step_0/slurm" or "6:freezer:/slurm/uid_0/job_7". The command finds programs by it that
 * have lost their environment. False if it is not in there. */
bool cgroup_read(uint32_t job, const char *line, char path[PATH_MAX]);

#endif
