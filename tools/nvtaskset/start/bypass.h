/*
 * Programs that find the driver before they ask the dynamic linker's cache: LD_LIBRARY_PATH names its directory, as in
 * NVIDIA's containers.
 */
#ifndef NVTASKSET_BYPASS_H
#define NVTASKSET_BYPASS_H

#include <limits.h>
#include <stdbool.h>

struct bypass {
	const char *where;      /* who says so, for users; constant */
	char driver[PATH_MAX];  /* what is found there */
};

/* Looks where what is started next may get it from: this environment, the machine's first process (root may look), and
 * /etc/environment. False where none of them names a directory with the driver. */
bool bypass_find(struct bypass *bypass);

#endif
