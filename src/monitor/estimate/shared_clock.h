/*
 * What one process that looks at several others knows of a GPU's clock from all of them.
 *
 * The clock is the same for all of them, so a program that is nearly idle profits from those that are not. Programs of
 * different users share nothing: a hostile one may say anything, so its words reach its own user's programs only. And
 * whoever knows something else himself keeps to that (times.h).
 *
 * From any thread.
 */
#ifndef NVTASKSET_MONITOR_ESTIMATE_SHARED_CLOCK_H
#define NVTASKSET_MONITOR_ESTIMATE_SHARED_CLOCK_H

#include "clock_fit.h"
#include "gpu/pci_address.h"

#include <stdbool.h>
#include <stdint.h>

struct shared_clock;

/* The one of this GPU for this user's programs. NULL if there is no memory. It lives until all have left it. */
struct shared_clock *shared_clock_join(struct pci_address pci, uint64_t user);
void shared_clock_leave(struct shared_clock *clock); /* may be NULL */

/* As clock_fit_add, and clock_fit_offset. */
bool shared_clock_add(struct shared_clock *clock, enum clock_order order, uint64_t cpu, uint64_t gpu);
bool shared_clock_offset(struct shared_clock *clock, uint64_t cpu, struct clock_offset *offset);

#endif
