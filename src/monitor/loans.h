/*
 * How long a lender may have waited for launches in its lent TPCs: an upper bound, from a watcher's view of both
 * programs. The TPCs of a launch are not known, nor further reasons for the lender's wait. Graphs are not seen.
 */
#ifndef NVTASKSET_MONITOR_LOANS_H
#define NVTASKSET_MONITOR_LOANS_H

#include "monitor.h"

struct loan_launch {
	struct pci_address pci;
	uint64_t launched_ns, ended_ns; /* the end at the latest */
};

/* The last launches of a borrower that could use more TPCs than its own. All zero: empty. */
#define LOANS_MAX 8192

struct loans {
	uint64_t count; /* number n is at n % LOANS_MAX */
	struct loan_launch list[LOANS_MAX];
};

void loans_add(struct loans *loans, const struct monitor_times *times);

/* The wait of a lender's launch: from the launch to the end of the borrower's last earlier launch; 0: all had ended.
 * Looks at LOANS_IN_FLIGHT launches before: more are not in flight at a time. */
#define LOANS_IN_FLIGHT 64
uint64_t loans_wait(const struct loans *loans, const struct loan_launch *lender);

struct loan_launch loans_launch(const struct monitor_gpu *gpu, const struct times_interval *kernel);

#endif
