/*
 * The clock of the simulated GPUs, on which kernels begin and end: %globaltimer.
 *
 * It is the processor's clock, but it shows another time and runs a little faster, as on the hardware. Where a kernel or a release
 * tells the time, the launch returns when that is over: nobody sees an end before it was. Other kernels take no time here.
 *
 * The distances are those of costs.h.
 */
#ifndef SIM_GPU_TIME_H
#define SIM_GPU_TIME_H

#include <stdint.h>

#define GPU_TIME_KERNEL_NS 2000 /* how long a kernel lasts, unless it says otherwise */
#define GPU_TIME_DRIFT 50000    /* so many ns of the processor's are one more on this clock */

/* The processor's clock. */
uint64_t gpu_time_of_cpu(void);

/* This thread's next kernel begins: it is launched now; or as the driver's own in front of a graph's kernels; or it follows
 * the thread's last one in the graph. */
void gpu_time_launch(void);
void gpu_time_launch_front(void);
void gpu_time_follow(void);

/* When the kernel begins; how long it lasts; waits for its end, and says when that was. */
uint64_t gpu_time_begin(void);
void gpu_time_last(uint64_t ns);
uint64_t gpu_time_end(void);

/* When its releases are made; waits until the processor can see them. */
uint64_t gpu_time_release(void);

#endif
