/*
 * The files of this node's jobs, in one directory.
 *
 *   job-123       the group of a job that has TPCs (include/nvtaskset.h)
 *   .note-123     what the job has, "START RESTARTS USER CLAIMED", "GPU SHARDS TPCS" for each GPU, and "memory BYTES" with
 *                 a limit. CLAIMED is 0 until its TPCs are all claimed
 *   .live-123     empty: each step's daemon holds a lock on it. While one does, the note is this run's, and other steps need
 *                 not ask the controller; while none does, the job has no programs here
 *   .lock         of jobs_lock
 *   .looked       in which life of slurmd the files were compared with the jobs that live
 *
 * The directory lies in slurmd's spool directory. Only root can write there, everybody can enter. A job's file is made by its
 * first step and removed by its epilog. What an epilog could not do (the node failed, the directory was full or read-only)
 * is mended: a job's first step removes what an earlier run of its job has left, which was requeued, or an earlier job of the
 * same number, which a controller gives again when it was killed. (The prolog could not: Slurm leaves it out where a job comes
 * back to a node soon.) Files of other jobs that are not on this node any more are removed by the first step after slurmd's
 * start, and whenever TPCs are missing; but not where a program of the job still runs. While the controller does not answer,
 * all files stay.
 */
#ifndef NVTASKSET_SLURM_JOBS_H
#define NVTASKSET_SLURM_JOBS_H

#include "allocation.h"
#include "nvtaskset.h"

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#define JOBS_LIFE "NVTASKSET_SLURMD" /* in the environment of slurmd and of its steps: tells its lives apart */

struct job {
	const char *directory;
	const char *node;
	uint32_t id; /* of heterogeneous jobs: the component's */
};

/* Makes the directory if it is missing. -1 with the reason. */
int jobs_make_directory(const char *directory, struct nvtaskset_error *error);

const char *jobs_path(const struct job *job, char path[PATH_MAX]);

struct jobs_gpu {
	unsigned int number; /* Slurm's */
	unsigned int shards; /* 0: the whole GPU */
	unsigned int tpcs;   /* of that GPU, if they are claimed */
};

struct jobs_note {
	long long start;       /* this run of the job */
	uint64_t memory;       /* bytes, the newest limit asked for by a step; 0: no limit */
	unsigned int restarts; /* and this */
	unsigned int user;
	unsigned int is_claimed;
	unsigned int count;    /* 0: the job has no GPUs, and no group */
	struct jobs_gpu gpus[ALLOCATION_GPUS_MAX];
};

/* False if there is no note, or if the group that it speaks of is missing; or in a directory that root cannot write to: it may
 * be an earlier run's. If a note cannot be written, the next step finds out again. */
bool jobs_read_note(const struct job *job, struct jobs_note *note);
void jobs_write_note(const struct job *job, const struct jobs_note *note);

/* Asks; removes files of an earlier run; notes what the job has, or reads what is noted of this run. -1 with the reason. */
int jobs_begin(const struct job *job, unsigned int user, struct jobs_note *note, struct nvtaskset_error *error);

/* Says until this process ends that the job has programs here, and that its note is right. */
void jobs_hold(const struct job *job);
bool jobs_is_held(const struct job *job);

/* How many jobs of a user have shards here. */
unsigned int jobs_of_user(const struct job *job, unsigned int user);

/* Whether the job has shards, not only whole GPUs. */
bool jobs_has_shards(const struct jobs_note *note);

/* Takes the lock of this name in the job's directory, until the descriptor is closed or its holder ends: this one keeps other steps
 * out. -1 with the reason. */
#define JOBS_LOCK ".lock"
int jobs_lock(const struct job *job, const char *name, struct nvtaskset_error *error);

/* Removes all files of a job. -1 with the reason. */
int jobs_remove(const struct job *job, struct nvtaskset_error *error);

/* Removes files of jobs that are not on this node any more. -1 with the reason. */
int jobs_reconcile(const struct job *job, struct nvtaskset_error *error);

/* The same, if slurmd has been started since the last time. */
int jobs_reconcile_once(const struct job *job, const char *life, struct nvtaskset_error *error);

/* Pure, for tests: the job of a file's name; 0 if it is none of ours. */
uint32_t jobs_of_name(const char *name);

#endif
