/*
 * A job's TPCs: its group gets as many as the job has shards.
 */
#ifndef NVTASKSET_SLURM_CLAIM_H
#define NVTASKSET_SLURM_CLAIM_H

#include "config.h"
#include "jobs.h"
#include "options.h"

/* Finds out what the job has and claims it, once for all its steps. A job that is
 * ending, or that the controller has forgotten, may still have some of its TPCs: so this waits for them, as long as plugstack.conf
 * says. -1 with the reason; NO_ROOM if too few
 * TPCs became free. */
int claim(const struct job *job, unsigned int user, const struct config *config, const struct options *options,
          struct jobs_note *note, struct nvtaskset_error *error);

#endif
