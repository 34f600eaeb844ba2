/*
 * The hooks of Slurm, and their work.
 *
 *   context      process                    user    here
 *   local        srun                       user    the options
 *   allocator    sbatch, salloc             user    the options
 *   slurmd       slurmd                     root    its start
 *   remote       slurmstepd, once a step    root    the job's TPCs; as the user: each task's environment
 *   job_script   a process before each job  root    MPS
 *                and one after it                   gives the TPCs back; MPS
 *
 * A hook never fails if that would drain the node without a word to the user. Prolog and epilog write to Slurm's log. A
 * step keeps its reason, and each of its tasks prints the reason.
 */
#include "common.h"
#include "plugin.h"

#include <slurm/slurm.h>
#include <slurm/spank.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* --- slurmd ------------------------------------------------------------------------------------------------------- */

/* A mistake is reported when the daemon starts, and not by the first job. The next step compares the files with the
 * jobs, and asks the controller, which perhaps does not answer yet. */
static int begin_slurmd(int count, char **arguments)
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

/* --- before and after a job --------------------------------------------------------------------------------------- */

struct script {
	struct config config;
	char directory[PATH_MAX];
	struct job job;
	uid_t user;
};

static int begin_script(struct script *script, spank_t spank, int count, char **arguments,
                        struct nvtaskset_error *error)
{
	script->job = (struct job){.directory = script->directory, .node = getenv("SLURMD_NODENAME")};
	if (spank_get_item(spank, S_JOB_ID, &script->job.id) != ESPANK_SUCCESS ||
	    spank_get_item(spank, S_JOB_UID, &script->user) != ESPANK_SUCCESS)
		return reason_set(error, NVTASKSET_ERROR_OTHER, "Slurm does not say which job this is");
	return config_parse(&script->config, count, arguments, error) < 0
	               ? -1
	               : config_directory(&script->config, script->job.node, script->directory, error);
}

static int begin_job(const struct script *script, struct nvtaskset_error *error)
{
	if (!mps_is_wanted(&script->config))
		return 0;
	if (!script->job.node)
		return reason_set(error, NVTASKSET_ERROR_OTHER, "Slurm does not say on which node");
	return jobs_make_directory(script->directory, error) < 0
	               ? -1
	               : mps_begin(&script->job, &script->config, script->user, error);
}

/* --- a step ------------------------------------------------------------------------------------------------------- */

/* The tasks are forked from this process, and inherit the values. */
static struct {
	struct config config;
	struct nvtaskset_error failure; /* "": none */
	char directory[PATH_MAX];
	char group[PATH_MAX];           /* "": no TPCs, or whole GPUs */
	char pipes[PATH_MAX];           /* of MPS; "": without MPS */
} step;

/* The job goes back into the queue, if allowed; else the job fails: no job may come back to a wrong node for ever. */
static void requeue(const struct job *job, uint32_t id, const char *reason)
{
	struct allocation allocation;

	if (id == SLURM_BATCH_SCRIPT && allocation_ask(&allocation, job->id, job->node, NULL) == 0 &&
	    allocation.restarts < step.config.requeues && allocation_requeue(job->id) == 0)
		slurm_spank_log("nvtaskset: job %u is put back into the queue, for the %u. time: %s", job->id,
		                allocation.restarts + 1, reason);
}

/* Slurm gives all components the options of the last component: the options say nothing about this component. */
static bool is_heterogeneous(spank_t spank)
{
	char size[16];

	return spank_getenv(spank, "SLURM_HET_SIZE", size, sizeof size) == ESPANK_SUCCESS;
}

static int make_directory(const struct job *job, struct nvtaskset_error *error)
{
	return config_directory(&step.config, job->node, step.directory, error) < 0
	               ? -1
	               : jobs_make_directory(step.directory, error);
}

static int begin_share(const struct job *job, unsigned int user, const struct options *options,
                       struct nvtaskset_error *error)
{
	struct jobs_note note;
	struct nvtaskset_error ignored;

	if (make_directory(job, error) < 0)
		return -1;
	jobs_reconcile_once(job, getenv(JOBS_LIFE), &ignored);
	if (claim(job, user, &step.config, options, &note, error) < 0)
		return -1;
	if (!jobs_has_shards(&note))
		return 0;
	jobs_path(job, step.group);
	return mps_is_wanted(&step.config) ? mps_find(job, user, step.pipes, error) : 0;
}

/* The extern step has no tasks, and adopted programs do not get its environment. If there is an extern step, it lives
 * from before the first step to the job's end, and the steps need not ask the controller. */
static void begin_extern(const struct job *job, unsigned int user)
{
	struct jobs_note note;
	struct nvtaskset_error ignored;

	if (make_directory(job, &ignored) == 0 && jobs_begin(job, user, &note, &ignored) == 0)
		jobs_hold(job);
}

static void begin_step(spank_t spank)
{
	static const struct options none;
	struct job job = {.directory = step.directory, .node = getenv("SLURMD_NODENAME")};
	struct nvtaskset_error error;
	uint32_t id;
	uid_t user;

	if (spank_get_item(spank, S_JOB_ID, &job.id) != ESPANK_SUCCESS ||
	    spank_get_item(spank, S_JOB_STEPID, &id) != ESPANK_SUCCESS ||
	    spank_get_item(spank, S_JOB_UID, &user) != ESPANK_SUCCESS || !job.node) {
		reason_set(&step.failure, NVTASKSET_ERROR_OTHER,
		           "Slurm does not say which job this is, or on which node");
	} else if (id == SLURM_EXTERN_CONT) {
		begin_extern(&job, user);
	} else if (begin_share(&job, user, is_heterogeneous(spank) ? &none : options_given(), &error) < 0) {
		step.failure = error;
		if (error.code == NVTASKSET_ERROR_NO_ROOM || error.code == NVTASKSET_ERROR_BUSY)
			requeue(&job, id, error.reason);
	}
}

/* --- a task's environment ----------------------------------------------------------------------------------------- */

/* Programs get our library as from the command nvtaskset: our directory comes first in LD_LIBRARY_PATH. Nothing of the
 * system changes, and jobs without TPCs find the driver alone. In containers, and where programs get our library anyway
 * (nvtaskset system enable), plugstack.conf has library=none. TPCs are in the group's file: changes reach all tasks. */

#define GROUP_FILE "NVTASKSET_GROUP_FILE"
#define SEARCH_PATH "LD_LIBRARY_PATH"
#define SEARCH_PATH_MAX (128 * 1024) /* the kernel's limit of a variable */

static int set_variable(spank_t spank, const char *variable, const char *value, struct nvtaskset_error *error)
{
	return spank_setenv(spank, variable, value, 1) == ESPANK_SUCCESS
	               ? 0
	               : reason_set(error, NVTASKSET_ERROR_OTHER, "%s: Slurm cannot set it", variable);
}

static int check_library(const char *library, struct nvtaskset_error *error)
{
	static const char *const names[] = {"libcuda.so.1", "libnvtaskset-driver.so.1"};
	char path[PATH_MAX];

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		snprintf(path, sizeof path, "%.4000s/%s", library, names[i]);
		if (access(path, R_OK) < 0)
			return reason_set(error, NVTASKSET_ERROR_OTHER, "%.200s: is not there or cannot be read: 'make "
			                                                "install' on this node puts it there", path);
	}
	return 0;
}

/* Puts the directory in front, once, whatever the job's script has set. */
static int put_library_first(spank_t spank, const char *library, struct nvtaskset_error *error)
{
	char *path = malloc(SEARCH_PATH_MAX + PATH_MAX);
	size_t length = strlen(library);
	int result = -1;

	if (!path)
		return reason_set(error, NVTASKSET_ERROR_NO_MEMORY, "no memory");
	char *rest = path + length + 1;

	memcpy(path, library, length);
	path[length] = ':';
	*rest = '\0';
	spank_err_t found = spank_getenv(spank, SEARCH_PATH, rest, SEARCH_PATH_MAX);

	if (found != ESPANK_SUCCESS && found != ESPANK_ENV_NOEXIST) {
		reason_set(error, NVTASKSET_ERROR_OTHER, SEARCH_PATH ": %s", spank_strerror(found));
	} else if (found == ESPANK_SUCCESS && strncmp(rest, library, length) == 0 &&
	           (rest[length] == ':' || !rest[length])) {
		result = 0;
	} else {
		/* An empty entry would be the current directory. */
		if (found != ESPANK_SUCCESS || !*rest)
			path[length] = '\0';
		result = set_variable(spank, SEARCH_PATH, path, error);
	}
	free(path);
	return result;
}

static void leave_others(spank_t spank, const char *directory)
{
	char path[PATH_MAX];
	size_t length = strlen(directory);

	if (spank_getenv(spank, GROUP_FILE, path, sizeof path) == ESPANK_SUCCESS &&
	    strncmp(path, directory, length) == 0 && path[length] == '/')
		spank_unsetenv(spank, GROUP_FILE);
}

/* A CUDA_MPS_PIPE_DIRECTORY of the user's stays. A job without a group keeps a group of its user's own. */
static int set_environment(spank_t spank, struct nvtaskset_error *error)
{
	const char *library = step.config.library;

	if (!*step.group) {
		leave_others(spank, step.directory);
		return 0;
	}
	/* Set by an nvtaskset that has started srun, perhaps on another machine. */
	spank_unsetenv(spank, "NVTASKSET_PARTITION");
	spank_unsetenv(spank, "NVTASKSET_PID");
	if (*step.pipes)
		spank_setenv(spank, "CUDA_MPS_PIPE_DIRECTORY", step.pipes, 0);
	if (set_variable(spank, GROUP_FILE, step.group, error) < 0)
		return -1;
	return *library && (check_library(library, error) < 0 || put_library_first(spank, library, error) < 0) ? -1 : 0;
}

/* --- the hooks ---------------------------------------------------------------------------------------------------- */

/* Slurm looks for the hooks by name. */
#pragma GCC visibility push(default)

/* cppcheck-suppress unknownMacro */
SPANK_PLUGIN(nvtaskset, 1)

/* An error in plugstack.conf must not keep users from submitting: the node reports the error. */
int slurm_spank_init(spank_t spank, int count, char **arguments)
{
	switch (spank_context()) {
	case S_CTX_REMOTE:
		config_parse(&step.config, count, arguments, &step.failure);
		return options_register(spank);
	case S_CTX_LOCAL:
	case S_CTX_ALLOCATOR:
		return options_register(spank);
	case S_CTX_SLURMD:
		return begin_slurmd(count, arguments);
	default:
		return 0;
	}
}

int slurm_spank_init_post_opt(spank_t spank, int count, char **arguments)
{
	(void)count;
	(void)arguments;
	if (spank_context() == S_CTX_REMOTE && !step.failure.reason[0])
		begin_step(spank);
	return 0;
}

/* In each task, as its user, after all of Slurm's own settings in the environment. */
int slurm_spank_task_init(spank_t spank, int count, char **arguments)
{
	struct nvtaskset_error error = step.failure;
	int result = error.reason[0] ? -1 : set_environment(spank, &error);

	(void)count;
	(void)arguments;
	if (result < 0)
		slurm_error("nvtaskset: %s", error.reason);
	return result;
}

/* Before the job's first step on this node, in each run. */
int slurm_spank_job_prolog(spank_t spank, int count, char **arguments)
{
	struct script script;
	struct nvtaskset_error error;

	if (begin_script(&script, spank, count, arguments, &error) < 0 || begin_job(&script, &error) < 0)
		slurm_error("nvtaskset: job %u: %s", script.job.id, error.reason);
	return 0;
}

/* After the end of the job's processes on this node. A later step removes files that cannot be removed now (jobs.h). */
int slurm_spank_job_epilog(spank_t spank, int count, char **arguments)
{
	struct script script;
	struct nvtaskset_error error;

	if (begin_script(&script, spank, count, arguments, &error) < 0 || jobs_remove(&script.job, &error) < 0)
		slurm_error("nvtaskset: job %u: its TPCs are not free yet: %s", script.job.id, error.reason);
	else
		mps_end(&script.job, &script.config, script.user);
	return 0;
}

#pragma GCC visibility pop
