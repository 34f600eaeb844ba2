/*
 * How long launches that went through the turnstile (turnstile.h) were on the GPU: estimated from the stamps that the GPU
 * wrote for them (state/kernels/stamps.h), as watchers do (monitor/estimate/times.h).
 *
 * For our thread alone. No launch waits for what is done here.
 */
#ifndef NVTASKSET_TIME_GATE_ENDS_H
#define NVTASKSET_TIME_GATE_ENDS_H

#include "state/kernels/stamps.h"

#include <stdbool.h>
#include <stdint.h>

/* A launch that has ended. Times are in ns of process_clock_ns. */
struct ends_launch {
	const struct stamps *ring; /* where its record is; NULL: it has none */
	uint64_t number;           /* of the record; a graph's is that of the graph's launch; 0: it has none */
	bool is_graph;
	uint64_t came;   /* when its call began, or later, if it was held back */
	uint64_t unseen; /* it was looked at then, or later, and had not ended; 0: never */
	uint64_t seen;   /* it was looked at then, or before, and had ended */
};

struct ends_time {
	uint64_t duration_ns; /* from its begin to its end */
	uint64_t used_ns;     /* by so much the time rose in which anything of this process was on that GPU */
	bool is_known; /* the duration, by stamps; otherwise it is too long rather than too short, and perhaps all is what the processor
	                * saw */
};

/* From here on, nothing is known of any launch before. Allocates some memory, which ends_end frees; without it, no time is
 * known. */
void ends_begin(void);
void ends_end(void);

/* Whether ends should be seen as soon as they come, for now: when a stamp could be seen, and could not yet, is what the clocks
 * are compared by. It is given up where that does not help. */
bool ends_want_close_looks(void);

/* Once for each launch, soon after its end, since its record is written over in time; in the order in which launches of the
 * same stream came. Of a graph that was launched again meanwhile, the first one may be said to have used the time of both. */
struct ends_time ends_measure(const struct ends_launch *launch);

#endif
