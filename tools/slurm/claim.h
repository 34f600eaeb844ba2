/*
 * A job's TPCs: the job's group gets a TPC for each shard.
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

/* Finds the job's allocation and claims the TPCs, once for all steps. A job that is ending, or that the controller has
 * forgotten, may still have some of the TPCs: waits for them, as long as plugstack.conf says. -1 with the reason;
 * NO_ROOM if too few TPCs became free. */
int claim(const struct job *job, unsigned int user, const struct config *config, const struct options *options,
          struct jobs_note *note, struct nvtaskset_error *error);

/* Pure, for tests: the job's control group, if Slurm has control groups (proctrack/cgroup), from a line of
 * /proc/PID/cgroup: "0::/system.slice/slurmstepd.scope/job_7/step_0/slurm" or "6:freezer:/slurm/uid_0/job_7". There the
 * command finds programs without their environment. False if the line has no job. */
bool cgroup_read(uint32_t job, const char *line, char path[PATH_MAX]);

#endif
