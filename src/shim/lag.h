/* How long the GPU goes on with a program after it was asked to put it aside. */
#ifndef NVTASKSET_SHIM_LAG_H
#define NVTASKSET_SHIM_LAG_H

#include <stdint.h>

/* Of the time that the call takes (docs/hardware.md, "Time slices"). Back, the program is when the call ends. */
#define LAG_NUMERATOR 3
#define LAG_DENOMINATOR 5

static inline uint64_t lag_of_call(uint64_t begin, uint64_t end)
{
	return (end - begin) * LAG_NUMERATOR / LAG_DENOMINATOR;
}

#endif
