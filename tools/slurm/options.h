/*
 * Options of srun, sbatch and salloc: --tpcs=8, --tpcs=25%, --gpcs=1, --gpu-memory=2G.
 *
 * TPCs and GPCs ask for shards, which only job_submit.lua can turn them into, at the controller. The step compares what they say with
 * what the job has got: where the script is missing, the job fails with the reason.
 * The limit of memory is for the group of a job with shards. A step with a limit sets the limit of all steps.
 */
#ifndef NVTASKSET_SLURM_OPTIONS_H
#define NVTASKSET_SLURM_OPTIONS_H

#include "nvtaskset.h"

#include <slurm/spank.h>
#include <stdint.h>

enum options_unit { OPTIONS_NONE, OPTIONS_TPCS, OPTIONS_PERCENT, OPTIONS_GPCS };

struct options {
	enum options_unit unit; /* NONE: no option was given */
	unsigned int number;
	uint64_t memory; /* bytes of each GPU; 0: no limit was given */
};

/* In every context in which an option may be read. */
int options_register(spank_t spank);

/* What was given last. SPANK may call back twice for one option, and users may give it twice. */
const struct options *options_given(void);

/* Pure, for tests. -1: not a valid value. */
int options_parse_tpcs(struct options *options, const char *text);
int options_parse_gpcs(struct options *options, const char *text);
int options_parse_memory(struct options *options, const char *text);

/* Whether a job that has so many TPCs of a GPU with `all` TPCs has what the options asked for; -1 with the reason. */
int options_check(const struct options *options, unsigned int has, unsigned int all, struct nvtaskset_error *error);

#endif
