/*
 * The answer of Slurm's controller about a job.
 *
 * Only the controller knows the number of a job's shards on a node, and their GPU: the environment of a step names the
 * step's shards, and comes from the user. The controller is asked once for each job on a node (jobs.h).
 */
#pragma once

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
	bool is_ending;      /* the job is also on its way out */
	unsigned int count;  /* GPUs on this node with a part for the job */
	struct allocation_gpu gpus[ALLOCATION_GPUS_MAX];
	time_t start;        /* with `restarts`, tells the runs of a requeued job apart */
	uint32_t restarts;
};

/* A job that the controller has forgotten is not here. -1 with the reason if the controller does not answer, or if the
 * answer does not tell the shards of each GPU. */
int allocation_ask(struct allocation *allocation, uint32_t job, const char *node, struct nvtaskset_error *error);

/* Pure, for tests: reads Slurm's "gpu:h200:1(IDX:0),shard:8(IDX:1)", or "shard:9(8/66,1/66)" as of 23.11. Without GPUs,
 * `count` is 0. -1 with the reason. */
int allocation_parse(struct allocation *allocation, const char *gres, struct nvtaskset_error *error);

/* Pure, for tests: whether a job's request, for example "gres:shard:8", asks for any shards. */
bool allocation_asks_for_shards(const char *text);

/* Puts a running batch job back into the queue. */
int allocation_requeue(uint32_t job);
