/*
 * The environment of COMMAND, which everything that it starts inherits: its partition, and how its requests for the
 * driver library lead to ours.
 */
#ifndef NVTASKSET_ENVIRONMENT_H
#define NVTASKSET_ENVIRONMENT_H

#include "base/error.h"

#include <stdbool.h>

struct environment {
	const char *partition; /* as segment_revision_format writes it */
	const char *gpus;      /* of handover_write */
	const char *driver;    /* of driver_find */
	const char *directory; /* of front_directory: first in LD_LIBRARY_PATH */
	bool hide;             /* it is told of a GPU of its partition's size: src/shim/hide.h */
	bool fail_misfits;     /* the policy of src/shim/misfit.h */
	bool strict;           /* what cannot be restricted ends, and no search path leads around us: src/audit */
};

/* Takes out what an nvtaskset around this one has put in, but for the partition. */
int environment_clean(struct error *error);

/* All or nothing matters to nobody: where it fails, COMMAND is not started. */
int environment_set(const struct environment *environment, struct error *error);

#endif
