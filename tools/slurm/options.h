/*
 * Options of srun, sbatch and salloc: --tpcs=8, --tpcs=25%, --gpcs=1, --gpu-memory=2G.
 *
 * TPCs and GPCs ask for shards: job_submit.lua, at the controller, turns the options into shards. The step compares the
 * options with the job's allocation: without the script, the job fails with the reason. The limit of memory is for the
 * group of a job with shards: each step with a limit sets the limit of all steps.
 */
#ifndef NVTASKSET_SLURM_OPTIONS_H
#define NVTASKSET_SLURM_OPTIONS_H

#include "nvtaskset.h"

#include <slurm/spank.h>
#include <stdint.h>

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

#endif
