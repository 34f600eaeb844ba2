/*
 * A GPU's clock, as known to a process that looks at several programs.
 *
 * The clock is the same for all programs, so a nearly idle program profits from busier programs. Programs of different
 * users share nothing: a hostile program may say anything, and misleads only its own user's programs. And bounds from a
 * program itself come before contradicting shared bounds (times.h).
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

/* The clock of the GPU for the user's programs. NULL without memory. The clock lives until all have left. */
struct shared_clock *shared_clock_join(struct pci_address pci, uint64_t user);
void shared_clock_leave(struct shared_clock *clock); /* may be NULL */

/* As clock_fit_add, and clock_fit_offset. */
bool shared_clock_add(struct shared_clock *clock, enum clock_order order, uint64_t cpu, uint64_t gpu);
bool shared_clock_offset(struct shared_clock *clock, uint64_t cpu, struct clock_offset *offset);

#endif
