/*
 * What a process's functions did since somebody looks at it: the sum of what monitor_take says each time.
 */
#ifndef NVTASKSET_MONITOR_FUNCTION_SUMS_H
#define NVTASKSET_MONITOR_FUNCTION_SUMS_H

#include "monitor.h"

/* All zero is empty. */
struct function_sums {
	unsigned int count;
	struct function_sum {
		unsigned int place; /* in the monitor's list */
		struct monitor_function all;
	} *list; /* in the order in which they were seen to run first */
};

/* Of the same look each time, as long as it lasts: the names are its own. A function for which there is no memory is
 * missing. */
void function_sums_add(struct function_sums *sums, const struct monitor_times *times);
void function_sums_free(struct function_sums *sums);

#endif
