/*
 * What things cost on a simulated GPU: all of it. Each number was measured on the hardware, and stands in hardware.md, in the
 * section that is named here, without MPS where there is a difference. None is taken from src/, where some of the same things are
 * estimated: SIM_COSTS=50 in the environment makes all of them half as large, 200 twice, and estimates go wrong by the difference.
 */
#ifndef SIM_COSTS_H
#define SIM_COSTS_H

#include <stdint.h>

enum {
	/* "Releases", the table of ways: from a launch to its kernel's first look at the clock; */
	COST_LAUNCH = 4600,
	/* from a kernel's last look to its time stamp, and in a graph of several; */
	COST_STAMP = 760,
	COST_NODE_STAMP = 960,
	/* from there until the processor sees it; */
	COST_VISIBLE = 1000,
	/* from there to the first look of the next kernel in the stream; in a graph; */
	COST_NEXT = 1060,
	COST_NEXT_NODE = 110,
	/* from the stamp of the driver's kernel in front to the first look in the graph. */
	COST_FRONT = 470,
	/* "Time slices": neither of two programs runs while the GPU changes from one to the other; */
	COST_CHANGE = 190000,
	/* from the begin of a call that suspends until kernels stand, and until it returns; */
	COST_STOP = 270000,
	COST_STOP_CALL = 467000,
	/* and for resuming. */
	COST_BACK_CALL = 268000
};

/* As the environment has it. */
uint64_t cost_ns(unsigned int cost);

#endif
