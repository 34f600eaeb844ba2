/*
 * A profiler as CUPTI's sample programs are, on the callback and the activity API. Functions that return int return
 * CUPTI's result: 0 is success. CUDA's headers are not included, since ours have the same names.
 */
#ifndef TESTS_HARDWARE_TOOL_H
#define TESTS_HARDWARE_TOOL_H

#include <stdbool.h>

int tool_subscribe(void);
int tool_unsubscribe(void);

/* One callback: of cuLaunchKernelEx; all of the driver's API; all that there are. */
int tool_enable_launches(bool on);
int tool_enable_domain(bool on);
int tool_enable_all(bool on);

/* Calls of cuLaunchKernelEx that were announced, since it was last asked. */
unsigned int tool_announced(void);

/* Records of kernels, by the activity API. */
int tool_trace(bool on);

/* Kernels recorded, since it was last asked. */
unsigned int tool_recorded(void);

/* Ends CUPTI in this process. */
int tool_finalize(void);

#endif
