/*
 * The files of this node's jobs, in one directory.
 *
 *   job-123       the group of a job with TPCs (include/nvtaskset.h)
 *   .note-123     the job's allocation, "START RESTARTS USER CLAIMED", "GPU SHARDS TPCS" for each GPU, and "memory
 *                 BYTES" with a limit. CLAIMED is 0 until all TPCs are claimed
 *   .live-123     empty: each step's daemon holds a lock on the file. While a daemon holds the lock, the note is of
 *                 this run, and new steps need not ask the controller. Otherwise the job has no programs here
 *   .lock         of jobs_lock
 *   .looked       the life of slurmd in which the files were compared with the living jobs
 *
 * The directory lies in slurmd's spool directory. Only root can write there, everybody can enter. A job's file is made
 * by its first step and removed by its epilog. An epilog may fail: the node failed, or the directory was full or
 * read-only. Then a job's first step removes the files of an earlier run of the job, which was requeued, or of an
 * earlier job with the same number: a controller that was killed may use a number again. (The prolog could not: Slurm
 * leaves out the prolog of a job that comes back to a node soon.) Files of jobs that are no longer on this node are
 * removed by the first step after slurmd's start, and whenever TPCs are missing; but not while a program of the job
 * runs. While the controller does not answer, all files stay.
 */
#pragma once

#include "allocation.h"
#include "nvtaskset.h"

#include <limits.h>
#include <sys/types.h>

#define JOBS_LIFE "NVTASKSET_SLURMD" /* in the environment of slurmd and of its steps: tells slurmd's lives apart */

struct job {
	const char *directory;
	const char *node;
	uint32_t id; /* of heterogeneous jobs: the component's */
};

/* Makes the directory if missing. -1 with the reason. */
int jobs_make_directory(const char *directory, struct nvtaskset_error *error);

const char *jobs_path(const struct job *job, char path[PATH_MAX]);

struct jobs_gpu {
	unsigned int number; /* Slurm's */
	unsigned int shards; /* 0: the whole GPU */
	unsigned int tpcs;   /* claimed TPCs of the GPU */
};

struct jobs_note {
	long long start;       /* with `restarts`, the run of the job */
	uint64_t memory;       /* bytes, the newest limit asked for by a step; 0: no limit */
	unsigned int restarts;
	unsigned int user;
	unsigned int is_claimed;
	unsigned int count;    /* 0: the job has no GPUs, and no group */
	struct jobs_gpu gpus[ALLOCATION_GPUS_MAX];
};

/* False without a note, or without the group of the note; also in a directory that root cannot write to, where the note
 * may be of an earlier run. If a note cannot be written, the next step asks the controller again. */
bool jobs_read_note(const struct job *job, struct jobs_note *note);
void jobs_write_note(const struct job *job, const struct jobs_note *note);

/* Asks the controller; removes files of an earlier run; writes the note, or reads this run's. -1 with the reason. */
int jobs_begin(const struct job *job, unsigned int user, struct jobs_note *note, struct nvtaskset_error *error);

/* Holds a lock until this process ends: the job has programs here, and its note is right. A failure is ignored. */
void jobs_hold(const struct job *job);
bool jobs_is_held(const struct job *job);

/* The number of a user's jobs with shards here. */
unsigned int jobs_of_user(const struct job *job, unsigned int user);

/* Whether the job has shards, not only whole GPUs. */
bool jobs_has_shards(const struct jobs_note *note);

/* Takes the lock `name` in the jobs' directory, until the descriptor is closed or its holder ends. JOBS_LOCK keeps out
 * every second step. -1 with the reason. */
#define JOBS_LOCK ".lock"
int jobs_lock(const struct job *job, const char *name, struct nvtaskset_error *error);

/* Removes all files of a job. -1 with the reason. */
int jobs_remove(const struct job *job, struct nvtaskset_error *error);

/* Removes files of jobs that are no longer on this node. -1 with the reason. */
int jobs_reconcile(const struct job *job, struct nvtaskset_error *error);

/* The same, if slurmd has been started since the last time. */
int jobs_reconcile_once(const struct job *job, const char *life, struct nvtaskset_error *error);

/* Pure, for tests: the job in a file's name; 0: not our file. */
uint32_t jobs_of_name(const char *name);
