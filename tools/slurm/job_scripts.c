/* Before a job, in a process of its own. */
#include "plugin.h"

#include "config.h"
#include "jobs.h"
#include "mps.h"

#include <stdlib.h>

static int begin(const struct job *job, const struct config *config, unsigned int user, struct nvtaskset_error *error)
{
	if (!mps_is_wanted(config))
		return 0;
	return jobs_make_directory(job->directory, error) < 0 ? -1 : mps_begin(job, config, user, error);
}

int prolog(spank_t spank, int count, char **arguments)
{
	char directory[PATH_MAX];
	struct config config;
	struct job job = {.directory = directory, .node = getenv("SLURMD_NODENAME")};
	struct nvtaskset_error error;
	uid_t user;

	if (spank_get_item(spank, S_JOB_ID, &job.id) != ESPANK_SUCCESS || spank_get_item(spank, S_JOB_UID, &user) != ESPANK_SUCCESS ||
	    !job.node)
		slurm_error("nvtaskset: Slurm does not say which job begins, or on which node");
	else if (config_parse(&config, count, arguments, &error) < 0 || config_directory(&config, job.node, directory, &error) < 0 ||
	         begin(&job, &config, user, &error) < 0)
		slurm_error("nvtaskset: job %u: %s", job.id, error.reason);
	return 0;
}

/* --- epilog -------------------------------------------------------------------------------------------------------- */

/* After a job, in a process of its own. */

/* What cannot be removed now, a later step removes when it looks through the files (jobs.h). */
int epilog(spank_t spank, int count, char **arguments)
{
	char directory[PATH_MAX];
	struct config config;
	struct job job = {.directory = directory, .node = getenv("SLURMD_NODENAME")};
	struct nvtaskset_error error;
	uid_t user;

	if (spank_get_item(spank, S_JOB_ID, &job.id) != ESPANK_SUCCESS || spank_get_item(spank, S_JOB_UID, &user) != ESPANK_SUCCESS)
		slurm_error("nvtaskset: Slurm does not say which job has ended");
	else if (config_parse(&config, count, arguments, &error) < 0 || config_directory(&config, job.node, directory, &error) < 0 ||
	         jobs_remove(&job, &error) < 0)
		slurm_error("nvtaskset: job %u: its TPCs are not free yet: %s", job.id, error.reason);
	else
		mps_end(&job, &config, user);
	return 0;
}
