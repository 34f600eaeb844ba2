/*
 * What we know of a process before we attach to it; above all, whether that is possible.
 */
#ifndef NVTASKSET_ATTACH_TARGET_H
#define NVTASKSET_ATTACH_TARGET_H

#include "attach/image.h"
#include "attach/memory.h"
#include "base/error.h"

#include <stdbool.h>
#include <sys/types.h>

struct target {
	pid_t pid;
	struct memory memory;
	bool unfiltered; /* its seccomp filters must be suspended while we work in it */
	struct image loader, libc;
	struct range driver; /* CUDA's */
	/* Other libraries that define malloc. */
	struct range *allocators;
	size_t allocator_count;
	struct range loader_data; /* the dynamic linker's data, with its locks */
	struct range *gaps; /* gap.h */
	size_t gap_count;
	uint64_t signal_return; /* the address to which signal handlers return */
	uint64_t errno_location, open_library, find_symbol, last_error, close_library;
};

/* Inspects the process without stopping or changing it. -1 with the reason if it cannot be attached to. On success, the
 * caller closes it. */
int target_open(struct target *target, pid_t pid, struct error *error);
void target_close(struct target *target);

/* Whether the process may write a file of this size, or else the kernel would end it (SIGXFSZ). -1 with the reason, which says
 * `what` the file is. */
int target_check_file_limit(pid_t pid, const char *what, size_t size, struct error *error);

/* Sets the reason for a failure with this errno, with the command to run if one helps. Always -1. */
int target_explain(pid_t pid, int failure, struct error *error);

#endif
