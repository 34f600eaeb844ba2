/* A step, on the node. */
#include "plugin.h"

#include "allocation.h"
#include "claim.h"
#include "environment.h"
#include "mps.h"
#include "reason.h"

#include <slurm/slurm.h>
#include <stdlib.h>
#include <string.h>

/* The tasks are forked from this process, and so know it too. */
static struct {
	struct config config;
	struct nvtaskset_error failure; /* "": none */
	char directory[PATH_MAX];
	char group[PATH_MAX];           /* "": the job has no TPCs, or whole GPUs */
	char pipes[PATH_MAX];           /* of MPS; "": without */
} step;

int slurmstepd_init(spank_t spank, int count, char **arguments)
{
	config_parse(&step.config, count, arguments, &step.failure);
	return options_register(spank);
}

/* The job goes back into the queue, where it may be; otherwise it fails. A node on which it can never run must not have it
 * for ever. */
static void requeue(const struct job *job, uint32_t id, const char *reason)
{
	struct allocation allocation;

	if (id == SLURM_BATCH_SCRIPT && allocation_ask(&allocation, job->id, job->node, NULL) == 0 &&
	    allocation.restarts < step.config.requeues && allocation_requeue(job->id) == 0)
		slurm_spank_log("nvtaskset: job %u is put back into the queue, for the %u. time: %s", job->id, allocation.restarts + 1, reason);
}

/* Slurm gives all components the options of the last one, so they say nothing about this one. */
static bool is_heterogeneous(spank_t spank)
{
	char size[16];

	return spank_getenv(spank, "SLURM_HET_SIZE", size, sizeof size) == ESPANK_SUCCESS;
}

static int begin(const struct job *job, unsigned int user, const struct options *options, struct nvtaskset_error *error)
{
	struct jobs_note note;
	struct nvtaskset_error ignored;

	if (config_directory(&step.config, job->node, step.directory, error) < 0 || jobs_make_directory(step.directory, error) < 0)
		return -1;
	jobs_reconcile_once(job, getenv(JOBS_LIFE), &ignored);
	if (claim(job, user, &step.config, options, &note, error) < 0)
		return -1;
	if (!jobs_has_shards(&note))
		return 0;
	jobs_path(job, step.group);
	return mps_is_wanted(&step.config) ? mps_find(job, user, step.pipes, error) : 0;
}

/* It has no tasks, and what it adopts has none of its environment. Where it is, it is there before the others until the job's
 * end: so these need not ask the controller. */
static void begin_extern(const struct job *job, unsigned int user)
{
	struct jobs_note note;
	struct nvtaskset_error ignored;

	if (config_directory(&step.config, job->node, step.directory, &ignored) == 0 &&
	    jobs_make_directory(step.directory, &ignored) == 0 && jobs_begin(job, user, &note, &ignored) == 0)
		jobs_hold(job);
}

int slurmstepd_begin_step(spank_t spank)
{
	static const struct options none;
	struct job job = {.directory = step.directory, .node = getenv("SLURMD_NODENAME")};
	struct nvtaskset_error error;
	uint32_t id;
	uid_t user;

	if (step.failure.reason[0])
		return 0;
	if (spank_get_item(spank, S_JOB_ID, &job.id) != ESPANK_SUCCESS || spank_get_item(spank, S_JOB_STEPID, &id) != ESPANK_SUCCESS ||
	    spank_get_item(spank, S_JOB_UID, &user) != ESPANK_SUCCESS || !job.node) {
		reason_set(&step.failure, NVTASKSET_ERROR_OTHER, "Slurm does not say which job this is, or on which node");
	} else if (id == SLURM_EXTERN_CONT) {
		begin_extern(&job, user);
	} else if (begin(&job, user, is_heterogeneous(spank) ? &none : options_given(), &error) < 0) {
		step.failure = error;
		if (error.code == NVTASKSET_ERROR_NO_ROOM || error.code == NVTASKSET_ERROR_BUSY)
			requeue(&job, id, error.reason);
	}
	return 0;
}

int slurmstepd_begin_task(spank_t spank)
{
	struct nvtaskset_error error = step.failure;
	int result = error.reason[0] ? -1 : environment_set(spank, step.directory, step.group, step.config.library, step.pipes, &error);

	if (result < 0)
		slurm_error("nvtaskset: %s", error.reason);
	return result;
}
