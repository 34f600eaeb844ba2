/*
 * Whether a program uses memory that may be waited for while the program is suspended: the kernel driver, when
 * a page has to move since a kernel has touched it; or another program that has the same memory.
 *
 * Each returns the reason for which the program must never be suspended any more, or SEGMENT_TIME_NONE.
 */
#ifndef NVTASKSET_TIME_TURNS_MEMORY_USE_H
#define NVTASKSET_TIME_TURNS_MEMORY_USE_H

#include "driver/calls.h"
#include "state/segment/segment.h"

#include <stdbool.h>
#include <stddef.h>

/* Of the GPUs of this machine: where kernels may use any memory of the program, nobody is told of it. Calls the driver, which
 * has begun. */
enum segment_time_state memory_use_of_gpus(void);

/* Of a call that begins; the first asks for fewer calls. */
bool memory_use_wants_call(int id);
enum segment_time_state memory_use_of_call(const struct call *call);

/* Of a module's code. */
enum segment_time_state memory_use_of_module(const void *cubin, size_t size);

/* Of a program that was running before we came. Calls the driver, and reads all of /proc/self/maps. */
enum segment_time_state memory_use_of_past(void);

#endif
