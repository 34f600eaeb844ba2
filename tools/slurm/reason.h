/*
 * Reasons of failures.
 */
#ifndef NVTASKSET_SLURM_REASON_H
#define NVTASKSET_SLURM_REASON_H

#include "nvtaskset.h"

/* Returns -1. `error` may be NULL. */
int reason_set(struct nvtaskset_error *error, enum nvtaskset_error_code code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif
