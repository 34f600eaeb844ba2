/*
 * Facts about a process before we attach; above all, whether we can.
 */
#pragma once

#include "attach/image.h"
#include "attach/memory.h"
#include "base/error.h"

#include <sys/types.h>

struct target {
	pid_t pid;
	struct memory memory;
	struct image loader, libc;
	struct range driver; /* CUDA's */
	/* Further libraries with a malloc. */
	struct range *allocators;
	size_t allocator_count;
	struct range loader_data; /* with the dynamic linker's locks */
	struct range *gaps; /* gap.c */
	size_t gap_count;
	uint64_t signal_return; /* where signal handlers return to */
	uint64_t errno_location, open_library, find_symbol, last_error, close_library;
};

/* Inspects the process without stopping or changing anything. -1 with the reason if we cannot attach. On success, the
 * caller closes the target. */
int target_open(struct target *target, pid_t pid, struct error *error);
void target_close(struct target *target);

/* Whether the process may write a file of the size, without SIGXFSZ. -1 with the reason; `what` names the file. */
int target_check_file_limit(pid_t pid, const char *what, size_t size, struct error *error);

/* Whether the filters of system calls (seccomp) let us work in the thread of process `pid`: each thread can have its
 * own filters. `unfiltered`: the filters must be suspended meanwhile. -1 with the reason. */
int target_check_filters(pid_t pid, pid_t thread, bool *unfiltered, struct error *error);

/* Sets the reason for a failure with the errno, with a command to run if one helps. Always -1. */
int target_explain(pid_t pid, int failure, struct error *error);
