/*
 * What plugstack.conf says behind the plugin's name: KEY=VALUE, each at most once.
 */
#ifndef NVTASKSET_SLURM_CONFIG_H
#define NVTASKSET_SLURM_CONFIG_H

#include "nvtaskset.h"

#include <limits.h>

struct config {
	char directory[PATH_MAX];  /* of the groups' files; root's. %n is the node's name */
	char library[PATH_MAX];    /* of our libcuda.so.1; "": programs find it by themselves (nvtaskset system enable) */
	char mps[PATH_MAX];        /* where NVIDIA's control program for MPS is; "": where it usually is; "no": without MPS */
	char gpus[PATH_MAX];       /* bus ids in Slurm's order, separated by commas; "": as in /dev/nvidiaN */
	unsigned int wait;         /* for TPCs that others still have, in seconds */
	unsigned int requeues;     /* of a batch job that gets no TPCs; then it fails */
	enum nvtaskset_strategy strategy;
};

/* -1 with the reason, for a key that is unknown too: a misspelt one would be silently in vain. */
int config_parse(struct config *config, int count, char **arguments, struct nvtaskset_error *error);

/* The directory of this node. `node` may be NULL, if there is no %n. -1 with the reason. */
int config_directory(const struct config *config, const char *node, char directory[PATH_MAX], struct nvtaskset_error *error);

#endif
