/*
 * For how long a lender may have waited for launches in TPCs that it lends: an upper bound, by what a watcher sees of
 * both. Which TPCs a launch was in is not known, nor what else the lender's launch had to wait for. Graphs are not seen.
 */
#ifndef NVTASKSET_MONITOR_LOANS_H
#define NVTASKSET_MONITOR_LOANS_H

#include "monitor.h"

/* The last launches of a borrower that could use more TPCs than its own. All zero: none. */
#define LOANS_MAX 8192

struct loans {
	uint64_t count; /* number n is at n % LOANS_MAX */
	struct monitor_kernel list[LOANS_MAX];
};

/* Those of a take. */
void loans_add(struct loans *loans, const struct monitor_times *times);

/* A lender's launch: from when it was made to the end of the last one there that was made before; 0: all had ended. So
 * many of the borrower's launches before it are looked at: more are not in flight at a time. */
#define LOANS_IN_FLIGHT 64
uint64_t loans_wait(const struct loans *loans, const struct monitor_kernel *lender);

#endif
