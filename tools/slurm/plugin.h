/*
 * What the plugin does in each context of SPANK's. 0, or -1 with the reason in Slurm's log.
 */
#ifndef NVTASKSET_SLURM_PLUGIN_H
#define NVTASKSET_SLURM_PLUGIN_H

#include <slurm/spank.h>

/* srun, sbatch, salloc: know our options. What is wrong in them is said before a job is submitted. */
int srun_init(spank_t spank, int count, char **arguments);

/* slurmd: refuses what is wrong in plugstack.conf, and has the files looked through (jobs.h). */
int slurmd_init(int count, char **arguments);

/* slurmstepd, as root, before the tasks are forked. What fails later than init is kept, and every task of the step says it:
 * a step that fails here would drain the node, and its user would not hear why. */
int slurmstepd_init(spank_t spank, int count, char **arguments);
int slurmstepd_begin_step(spank_t spank);

/* In each task, as its user, behind all that Slurm itself sets in its environment. */
int slurmstepd_begin_task(spank_t spank);

/* Before the job's first step on this node, in each of its runs. Never fails: the steps say what is wrong. */
int prolog(spank_t spank, int count, char **arguments);

/* After the job's processes on this node have ended. Never fails: that would drain the node. */
int epilog(spank_t spank, int count, char **arguments);

#endif
