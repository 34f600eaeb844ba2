/*
 * A job's control group, where Slurm uses these (proctrack/cgroup). The command finds programs by it that have lost their
 * environment.
 */
#ifndef NVTASKSET_SLURM_CGROUP_H
#define NVTASKSET_SLURM_CGROUP_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

/* Of this process, which is a step of the job. NULL if it is in none. */
const char *cgroup_find(uint32_t job, char path[PATH_MAX]);

/* Pure, for tests: the job's part of a line of /proc/PID/cgroup, such as "0::/system.slice/slurmstepd.scope/job_7/step_0/slurm" or
 * "6:freezer:/slurm/uid_0/job_7". False if it is not in there. */
bool cgroup_read(uint32_t job, const char *line, char path[PATH_MAX]);

#endif
