/*
 * Which hook of Slurm's runs what, and where. The rest of the plugin does not know how Slurm calls it.
 *
 *   context      process                    user    here
 *   local        srun                       user    srun.c: options
 *   allocator    sbatch, salloc             user    srun.c: options
 *   slurmd       slurmd                     root    slurmd.c: its start
 *   remote       slurmstepd, once a step    root    slurmstepd.c: the job's TPCs; as the user: each task's environment
 *   job_script   a process before each job  root    prolog.c: MPS
 *                and one after it                   epilog.c: gives the TPCs back; MPS
 */
#include "contexts.h"

/* Slurm looks for these by name. */
#pragma GCC visibility push(default)

/* cppcheck-suppress unknownMacro */
SPANK_PLUGIN(nvtaskset, 1)

int slurm_spank_init(spank_t spank, int count, char **arguments)
{
	switch (spank_context()) {
	case S_CTX_LOCAL:
	case S_CTX_ALLOCATOR:
		return srun_init(spank, count, arguments);
	case S_CTX_SLURMD:
		return slurmd_init(count, arguments);
	case S_CTX_REMOTE:
		return slurmstepd_init(spank, count, arguments);
	default:
		return 0;
	}
}

int slurm_spank_init_post_opt(spank_t spank, int count, char **arguments)
{
	(void)count;
	(void)arguments;
	return spank_context() == S_CTX_REMOTE ? slurmstepd_begin_step(spank) : 0;
}

int slurm_spank_task_init(spank_t spank, int count, char **arguments)
{
	(void)count;
	(void)arguments;
	return slurmstepd_begin_task(spank);
}

int slurm_spank_job_prolog(spank_t spank, int count, char **arguments)
{
	return prolog(spank, count, arguments);
}

int slurm_spank_job_epilog(spank_t spank, int count, char **arguments)
{
	return epilog(spank, count, arguments);
}

#pragma GCC visibility pop
