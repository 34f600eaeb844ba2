/*
 * What has to be known of a process before it is attached to; first of all, whether it can be.
 */
#ifndef NVTASKSET_ATTACH_TARGET_H
#define NVTASKSET_ATTACH_TARGET_H

#include "attach/image.h"
#include "attach/machine.h"
#include "attach/memory.h"
#include "base/error.h"

#include <stdbool.h>
#include <sys/types.h>

struct target {
	pid_t pid;
	struct memory memory;
	bool unfiltered; /* its seccomp filters must not hold while we work in it */
	struct image loader, libc;
	struct range driver; /* CUDA's */
	/* Other libraries that allocate memory for it. */
	struct range *allocators;
	size_t allocator_count;
	struct range loader_data; /* where the dynamic linker's locks are */
	struct range *gaps; /* gap.h */
	size_t gap_count;
	uint64_t signal_return; /* where signal handlers return to */
	uint64_t errno_location, open_library, find_symbol, last_error, close_library;
};

/* Looks at the process without stopping it. -1 with the reason where it cannot be attached to; nothing has happened to
 * it then. The caller closes it if 0. */
int target_open(struct target *target, pid_t pid, struct error *error);
void target_close(struct target *target);

/* How large a file the process may write, in bytes; UINT64_MAX where nothing says less. */
uint64_t target_file_limit(pid_t pid);

/* The reason for a failure with this errno, and the command to run where one helps. Always -1. */
int target_explain(pid_t pid, int failure, struct error *error);

#endif
