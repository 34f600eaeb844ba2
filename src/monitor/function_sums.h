/*
 * The work of a process's functions since the begin of a look: the sums of monitor_take's results.
 */
#pragma once

#include "monitor.h"

/* All zero is empty. */
struct function_sums {
	unsigned int count;
	struct function_sum {
		unsigned int place; /* in the monitor's list */
		struct monitor_function all;
	} *list; /* in the order of the first run seen */
};

/* Of the same look each time, while the look lasts: the names are the look's. Without memory a function is missing. */
void function_sums_add(struct function_sums *sums, const struct monitor_times *times);
void function_sums_free(struct function_sums *sums);
