/*
 * NVIDIA MPS: one control daemon for each user with jobs with shards on the node, so that the programs of these jobs run side
 * by side, each within its TPCs. The prolog of the first such job starts it, the epilog of the last ends it, with all that still
 * uses it.
 *
 * It runs as that user, and outside of the job: the processes of a prolog are slurmd's, so no job's end or control group ends
 * the daemon. Its pipes and its log lie in the directory mps-USER beside the jobs' files. Root makes that, and does nothing in
 * it. Servers of two users take turns on a GPU.
 *
 *   mps-1000/pipe             CUDA_MPS_PIPE_DIRECTORY
 *   mps-1000/pipe-log-1000    its log
 *   .mps-1000                 a lock: no daemon is ended while a job begins
 */
#ifndef NVTASKSET_SLURM_MPS_H
#define NVTASKSET_SLURM_MPS_H

#include "config.h"
#include "jobs.h"

bool mps_is_wanted(const struct config *config);

/* jobs_begin, and then a daemon if the job has shards. -1 with the reason. */
int mps_begin(const struct job *job, const struct config *config, unsigned int user, struct nvtaskset_error *error);

/* Ends the user's daemon if the user has no jobs with shards here any more. Where that fails, the epilog of the user's next job
 * tries again. Other users' daemons are left alone: users can keep the processes waiting that end theirs. */
void mps_end(const struct job *job, const struct config *config, unsigned int user);

/* Where a user's pipes are. -1 with the reason if no daemon runs there: BUSY. A step does not start one, which would be in the
 * job's control group and end with it. Slurm leaves out the prolog of a job that was on this node in the last two minutes; it does
 * not put requeued jobs there so soon, unless somebody sets their StartTime. */
int mps_find(const struct job *job, unsigned int user, char pipes[PATH_MAX], struct nvtaskset_error *error);

#endif
