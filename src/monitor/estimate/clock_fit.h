/*
 * How far a GPU's clock is ahead of the processor's, and how exactly that is known.
 *
 * Both count ns, but from different begins, and drift apart. An event on the GPU that is known to be later than a
 * moment of the processor, or earlier, bounds the offset from one side. Bounds of the last 12 seconds are kept: the
 * offset is known as far as all lines over time between the bounds agree.
 */
#pragma once

#include "gpu/pci_address.h"

#define CLOCK_FIT_SPANS 128
#define CLOCK_FIT_SPAN_NS UINT64_C(100000000)

/* All zero: nothing is known. */
struct clock_fit {
	struct clock_bounds {
		uint64_t span; /* the processor's time, in CLOCK_FIT_SPAN_NS; 0: free */
		struct clock_bound {
			bool is_known;
			int64_t offset;
			uint64_t at;
		} lower, upper, usual;
	} spans[CLOCK_FIT_SPANS];
};

/* The order of an event on the GPU and a moment of the processor. CLOCK_USUALLY_NOT_BEFORE may be wrong, and is ignored
 * where the other two contradict. */
enum clock_order {
	CLOCK_NOT_BEFORE,
	CLOCK_NOT_AFTER,
	CLOCK_USUALLY_NOT_BEFORE
};

/* An event at the GPU's time `gpu` was in this order to `cpu`. Returns whether the clocks are known better now. */
bool clock_fit_add(struct clock_fit *fit, enum clock_order order, uint64_t cpu, uint64_t gpu);

/* At the processor's time `at`, the GPU's clock minus the processor's is `offset`, within error_ns. At a time t: offset
 * + drift * (t - at), within error_ns + drift_error * |t - at|. */
struct clock_offset {
	uint64_t at;
	int64_t offset;
	uint64_t error_ns;
	double drift, drift_error;
};

/* At the processor's time `cpu`. False if not bounded from both sides. */
bool clock_fit_offset(const struct clock_fit *fit, uint64_t cpu, struct clock_offset *offset);

/* --- shared_clock.c ----------------------------------------------------------------------------------------------- */

/*
 * A GPU's clock, as known to a process that looks at several programs.
 *
 * The clock is the same for all programs, so a nearly idle program profits from busier programs. Programs of different
 * users share nothing: a hostile program may say anything, and misleads only its own user's programs. And bounds from a
 * program itself come before contradicting shared bounds (times.h).
 *
 * From any thread.
 */

struct shared_clock;

/* The clock of the GPU for the user's programs. NULL without memory. The clock lives until all have left. */
struct shared_clock *shared_clock_join(struct pci_address pci, uint64_t user);
void shared_clock_leave(struct shared_clock *clock); /* may be NULL */

/* As clock_fit_add, and clock_fit_offset. */
bool shared_clock_add(struct shared_clock *clock, enum clock_order order, uint64_t cpu, uint64_t gpu);
bool shared_clock_offset(struct shared_clock *clock, uint64_t cpu, struct clock_offset *offset);
