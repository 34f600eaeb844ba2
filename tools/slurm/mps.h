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
#ifndef NVTASKSET_SLURM_MPS_H
#define NVTASKSET_SLURM_MPS_H

#include "config.h"
#include "jobs.h"

bool mps_is_wanted(const struct config *config);

/* jobs_begin, and then a daemon if the job has shards. -1 with the reason. */
int mps_begin(const struct job *job, const struct config *config, unsigned int user, struct nvtaskset_error *error);

/* Ends the user's daemon if the user has no more jobs with shards here. After a failure, the epilog of the user's next
 * job tries again. Daemons of other users are left alone: a user can delay the processes that end the user's daemon. */
void mps_end(const struct job *job, const struct config *config, unsigned int user);

/* The directory of a user's pipes. -1 with the reason if no daemon runs there: BUSY. A step does not start a daemon,
 * which would be in the job's control group and end with the job. Slurm leaves out the prolog of a job that was on this
 * node in the last two minutes. Requeued jobs come back later, unless somebody sets their StartTime. */
int mps_find(const struct job *job, unsigned int user, char pipes[PATH_MAX], struct nvtaskset_error *error);

#endif
