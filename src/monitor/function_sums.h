/*
 * What a process's functions did since somebody looks at it: the sum of what look_take says each time.
 */
#ifndef NVTASKSET_MONITOR_FUNCTION_SUMS_H
#define NVTASKSET_MONITOR_FUNCTION_SUMS_H

#include "look.h"

struct function_sum {
	char *name; /* mangled; NULL: all functions that had no room */
	uint64_t instances, overruns;
	struct durations durations;
};

/* All zero is empty. */
struct function_sums {
	unsigned int count;
	struct function_sum *list; /* in the order in which they were seen first */
};

/* A function for which there is no memory is missing. */
void function_sums_add(struct function_sums *sums, const struct look_times *times);
void function_sums_free(struct function_sums *sums);

#endif
