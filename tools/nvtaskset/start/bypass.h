/*
 * Programs that find the driver without the dynamic linker's cache: LD_LIBRARY_PATH names the driver's directory, as in
 * NVIDIA's containers.
 */
#ifndef NVTASKSET_BYPASS_H
#define NVTASKSET_BYPASS_H

#include <limits.h>
#include <stdbool.h>

struct bypass {
	const char *where;      /* where LD_LIBRARY_PATH is set, for messages; constant */
	char driver[PATH_MAX];  /* the driver in one of its directories */
};

/* Reads LD_LIBRARY_PATH where new programs may get it from: this environment, /etc/environment, and the environment of
 * process 1, which only root can read. False if none of them names a directory with the driver. */
bool bypass_find(struct bypass *bypass);

#endif
