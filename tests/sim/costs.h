/*
 * What things cost on a simulated GPU: all of it. Each number was measured on the hardware, and stands in hardware.md, in the
 * section that is named here, without MPS where there is a difference. None is taken from src/, where some of the same things are
 * estimated: SIM_COSTS=50 in the environment makes all of them half as large, 200 twice, and estimates go wrong by the difference.
 */
#ifndef SIM_COSTS_H
#define SIM_COSTS_H

#include <stdint.h>

/* X(name, ns) */
#define COSTS(X)                                                                                 \
	/* "Releases", the table of ways: from a launch to its kernel's first look at the clock; */ \
	X(LAUNCH, 4600)                                                                          \
	/* from a kernel's last look to its time stamp, and in a graph of several; */             \
	X(STAMP, 760)                                                                            \
	X(NODE_STAMP, 960)                                                                       \
	/* from there until the processor sees it; */                                            \
	X(VISIBLE, 1000)                                                                         \
	/* from there to the first look of the next kernel in the stream; in a graph; */          \
	X(NEXT, 1060)                                                                            \
	X(NEXT_NODE, 110)                                                                        \
	/* from the stamp of the driver's kernel in front to the first look in the graph. */      \
	X(FRONT, 470)                                                                            \
	/* "Time slices": neither of two programs runs while the GPU changes from one to the other; */ \
	X(CHANGE, 190000)                                                                        \
	/* from the begin of a call that suspends until kernels stand, and until it returns; */  \
	X(STOP, 270000)                                                                          \
	X(STOP_CALL, 467000)                                                                     \
	/* and for resuming. */                                                                  \
	X(BACK_CALL, 268000)

enum cost {
#define COST_NAME(name, ns) COST_##name,
	COSTS(COST_NAME)
#undef COST_NAME
};

uint64_t cost_ns(enum cost cost);

#endif
