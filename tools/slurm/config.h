/*
 * The plugin's arguments in plugstack.conf: KEY=VALUE, each at most once.
 */
#pragma once

#include "nvtaskset.h"

#include <limits.h>

struct config {
	char directory[PATH_MAX];  /* of the groups' files; root's. %n is the node's name */
	/* The directory of our libcuda.so.1; "": not needed (nvtaskset system enable). */
	char library[PATH_MAX];
	/* The path of NVIDIA's control program for MPS; "": the usual path; "no": without MPS. */
	char mps[PATH_MAX];
	char gpus[PATH_MAX];       /* bus ids in Slurm's order, separated by commas; "": as in /dev/nvidiaN */
	unsigned int wait;         /* for TPCs in use, in seconds */
	unsigned int requeues;     /* of a batch job without TPCs; then the job fails */
	enum nvtaskset_strategy strategy;
};

/* -1 with the reason, also for an unknown key: a misspelt key would be silently in vain. */
int config_parse(struct config *config, int count, char **arguments, struct nvtaskset_error *error);

/* The directory of this node. `node` may be NULL without %n. -1 with the reason. */
int config_directory(const struct config *config, const char *node, char directory[PATH_MAX],
                     struct nvtaskset_error *error);
