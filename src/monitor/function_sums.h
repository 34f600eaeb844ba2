/*
 * What a process's functions did since somebody looks at it: the sum of what look_take says each time.
 */
#ifndef NVTASKSET_MONITOR_FUNCTION_SUMS_H
#define NVTASKSET_MONITOR_FUNCTION_SUMS_H

#include "look.h"

/* All zero is empty. */
struct function_sums {
	unsigned int count;
	struct look_function *list; /* those of the look, in the same order; some may not have run yet */
};

/* Of the same look each time, as long as it lasts: the names are its own. Without memory, the newest are missing. */
void function_sums_add(struct function_sums *sums, const struct look_times *times);
void function_sums_free(struct function_sums *sums);

#endif
