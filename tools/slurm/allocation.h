/*
 * What Slurm's controller says about a job.
 *
 * Only the controller knows how many shards a job has on a node, and of which GPU: the environment of a step names the
 * step's, and comes from the user. It is asked once for each job on a node (jobs.h).
 */
#ifndef NVTASKSET_SLURM_ALLOCATION_H
#define NVTASKSET_SLURM_ALLOCATION_H

#include "nvtaskset.h"

#include <stdbool.h>
#include <time.h>

#define ALLOCATION_GPUS_MAX 64

struct allocation_gpu {
	unsigned int number; /* Slurm's */
	unsigned int shards; /* 0: the job has the whole GPU */
};

struct allocation {
	bool is_here;        /* the job has this node, running, suspended or completing */
	bool is_ending;      /* and it is on its way out */
	unsigned int count;  /* of GPUs on this node of which the job has something */
	struct allocation_gpu gpus[ALLOCATION_GPUS_MAX];
	time_t start;        /* which run of the job this is: another one after it was requeued */
	uint32_t restarts;
};

/* A job that the controller does not know any more is not here. -1 with the reason if the controller does not answer, or
 * if the answer does not say which GPU has how many of the shards. */
int allocation_ask(struct allocation *allocation, uint32_t job, const char *node, struct nvtaskset_error *error);

/* Pure, for tests: reads Slurm's "gpu:h200:1(IDX:0),shard:8(IDX:1)", or "shard:9(8/66,1/66)" as of 23.11. No GPUs: `count` is 0.
 * -1 with the reason. */
int allocation_parse(struct allocation *allocation, const char *gres, struct nvtaskset_error *error);

/* Pure, for tests: whether a job's request, such as "gres:shard:8", asks for any shards. */
bool allocation_asks_for_shards(const char *text);

/* Puts a batch job back into the queue, from where it runs now. */
int allocation_requeue(uint32_t job);

#endif
