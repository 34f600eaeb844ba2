/* Whether the program is suspended, as all rules know it. */
#ifndef NVTASKSET_TIME_RULES_SUSPENSION_H
#define NVTASKSET_TIME_RULES_SUSPENSION_H

#include <stdbool.h>
#include <stdint.h>

struct suspension {
	bool is_on;
	uint64_t since; /* the GPU let go of the program or took the program up again; ns of process_clock_ns */
};

#endif
