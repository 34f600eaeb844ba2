/*
 * Which hook of Slurm's runs what, and where. The rest of the plugin does not know how Slurm calls it.
 *
 *   context      process                    user    here
 *   local        srun                       user    plugin.c: options
 *   allocator    sbatch, salloc             user    plugin.c: options
 *   slurmd       slurmd                     root    plugin.c: its start
 *   remote       slurmstepd, once a step    root    slurmstepd.c: the job's TPCs; as the user: each task's environment
 *   job_script   a process before each job  root    job_scripts.c: MPS
 *                and one after it                   job_scripts.c: gives the TPCs back; MPS
 */
#include "plugin.h"

#include "config.h"
#include "jobs.h"
#include "options.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

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

/* --- srun ---------------------------------------------------------------------------------------------------------- */

/* srun, sbatch and salloc: the options, and nothing else. */

/* An error in plugstack.conf must not keep users from submitting: the node says it. */
int srun_init(spank_t spank, int count, char **arguments)
{
	(void)count;
	(void)arguments;
	return options_register(spank);
}

/* --- slurmd -------------------------------------------------------------------------------------------------------- */

/* slurmd itself. */

/* A mistake is told when the daemon starts, and not by the first job. The files are looked through by the next step: it can
 * ask the controller, which perhaps does not answer yet (slurmstepd.c). */
int slurmd_init(int count, char **arguments)
{
	struct config config;
	struct nvtaskset_error error;
	char life[48];

	if (config_parse(&config, count, arguments, &error) < 0) {
		slurm_error("nvtaskset: %s", error.reason);
		return -1;
	}
	snprintf(life, sizeof life, "%d.%lld", (int)getpid(), (long long)time(NULL));
	setenv(JOBS_LIFE, life, 1);
	return 0;
}
