/*
 * The parts that make and end the share of a job, for the hooks of plugin.c.
 */
#pragma once

#include "config.h"
#include "jobs.h"
#include "nvtaskset.h"

#include <limits.h>
#include <slurm/spank.h>
#include <stdint.h>

/* --- options.c ---------------------------------------------------------------------------------------------------- */

/*
 * Options of srun, sbatch and salloc: --tpcs=8, --tpcs=25%, --gpcs=1, --gpu-memory=2G.
 *
 * TPCs and GPCs ask for shards: job_submit.lua, at the controller, turns the options into shards. The step compares the
 * options with the job's allocation: without the script, the job fails with the reason. The limit of memory is for the
 * group of a job with shards: each step with a limit sets the limit of all steps.
 */

enum options_unit { OPTIONS_NONE, OPTIONS_TPCS, OPTIONS_PERCENT, OPTIONS_GPCS };

struct options {
	enum options_unit unit; /* NONE: no option */
	unsigned int number;
	uint64_t memory; /* bytes of each GPU; 0: no limit */
};

/* In every context in which an option may be read. */
int options_register(spank_t spank);

/* The last values. SPANK may call back twice for an option, and users may repeat an option. */
const struct options *options_given(void);

/* Pure, for tests. -1: not a valid value. */
int options_parse_tpcs(struct options *options, const char *text);
int options_parse_gpcs(struct options *options, const char *text);
int options_parse_memory(struct options *options, const char *text);

/* Whether a job with `has` TPCs of a GPU with `all` TPCs has the TPCs of the options; -1 with the reason. */
int options_check(const struct options *options, unsigned int has, unsigned int all, struct nvtaskset_error *error);

/* --- claim.c ------------------------------------------------------------------------------------------------------ */

/*
 * A job's TPCs: the job's group gets a TPC for each shard.
 */

/* Finds the job's allocation and claims the TPCs, once for all steps. A job that is ending, or that the controller has
 * forgotten, may still have some of the TPCs: waits for them, as long as plugstack.conf says. -1 with the reason;
 * NO_ROOM if too few TPCs became free. */
int claim(const struct job *job, unsigned int user, const struct config *config, const struct options *options,
          struct jobs_note *note, struct nvtaskset_error *error);

/* Pure, for tests: the job's control group, if Slurm has control groups (proctrack/cgroup), from a line of
 * /proc/PID/cgroup: "0::/system.slice/slurmstepd.scope/job_7/step_0/slurm" or "6:freezer:/slurm/uid_0/job_7". There the
 * command finds programs without their environment. False if the line has no job. */
bool claim_read_cgroup(uint32_t job, const char *line, char path[PATH_MAX]);

/* --- mps.c -------------------------------------------------------------------------------------------------------- */

/*
 * NVIDIA MPS: a control daemon for each user with jobs with shards on the node. The programs of these jobs run side by
 * side, each within its TPCs. The prolog of the first job starts the daemon. The epilog of the last job ends the
 * daemon, with all programs that still use MPS.
 *
 * The daemon runs as the user, and outside of the job: the processes of a prolog are slurmd's, so no job's end or
 * control group ends the daemon. The pipes and the log lie in the directory mps-USER beside the jobs' files. Root makes
 * the directory, and does nothing inside. Servers of two users take turns on a GPU.
 *
 *   mps-1000/pipe             CUDA_MPS_PIPE_DIRECTORY
 *   mps-1000/pipe-log-1000    the log
 *   .mps-1000                 a lock: no daemon is ended while a job begins
 */

bool mps_is_wanted(const struct config *config);

/* jobs_begin, and then a daemon if the job has shards. -1 with the reason. */
int mps_begin(const struct job *job, const struct config *config, unsigned int user, struct nvtaskset_error *error);

/* Ends the user's daemon if the user has no more jobs with shards here. After a failure, the epilog of the user's next
 * job tries again. Leaves daemons of other users alone: the ending runs as the daemon's user, who could delay the
 * epilog. */
void mps_end(const struct job *job, const struct config *config, unsigned int user);

/* The directory of a user's pipes. -1 with the reason if no daemon runs there: BUSY. A step does not start a daemon,
 * which would be in the job's control group and end with the job. Slurm leaves out the prolog of a job that was on this
 * node in the last two minutes. Requeued jobs come back later, unless somebody sets their StartTime. */
int mps_find(const struct job *job, unsigned int user, char pipes[PATH_MAX], struct nvtaskset_error *error);
