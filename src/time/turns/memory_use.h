/*
 * Whether the program uses memory for which a party may wait while the program is suspended: the kernel driver, to
 * move a page after the touch of a kernel; or a second program with the same memory.
 *
 * Each function returns the reason never to suspend the program again, or SEGMENT_TIME_NONE.
 */
#pragma once

#include "driver/calls.h"
#include "state/segment/segment.h"

/* Of the GPUs of the machine: on some GPUs, kernels use any memory of the program without a call. Calls the driver,
 * which has begun. */
enum segment_time_state memory_use_of_gpus(void);

/* Of a call that begins. memory_use_wants_call: whether a call can give a reason at all. */
bool memory_use_wants_call(int id);
enum segment_time_state memory_use_of_call(const struct call *call);

/* Of a module's code. */
enum segment_time_state memory_use_of_module(const void *cubin, size_t size);

/* Of a program that ran before our library came. Calls the driver, and reads all of /proc/self/maps. */
enum segment_time_state memory_use_of_past(void);
