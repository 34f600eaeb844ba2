/*
 * The environment of COMMAND and its descendants: the partition, and variables to load our library, not the driver's.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>

struct environment {
	const char *partition; /* as revision_format writes it */
	const char *gpus;      /* from topology_environment_write */
	const char *driver;    /* from driver_find */
	const char *directory; /* from front_directory; first in LD_LIBRARY_PATH */
	bool hide;             /* CUDA reports a GPU of the partition's size: src/launch/space/hide.h */
	bool fail_misfits;     /* launches that the partition cannot hold fail: src/launch/space/residency.h */
	bool strict;           /* programs that cannot be restricted end, and all load our library: src/audit/audit.c */
};

/* Removes the settings of an nvtaskset around this process, except the partition. -1 with the reason. */
int environment_clean(struct error *error);

/* -1 with the reason: some variables may be set, but COMMAND is not started. */
int environment_set(const struct environment *environment, struct error *error);
