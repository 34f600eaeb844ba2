/*
 * The kernel's time, which never goes backward: CLOCK_MONOTONIC of the host. A program may replace the C library's
 * functions of time, and a container may have its own clock (time_namespaces(7)): neither has an effect here. Times in
 * shared memory mean the same to all processes. errno is preserved; no cancellation point.
 */
#ifndef NVTASKSET_CLOCK_H
#define NVTASKSET_CLOCK_H

#include <stdint.h>
#include <time.h>

/* In ns; in ms with fractions. No system call, unless the kernel offers no other way. */
uint64_t process_clock_ns(void);
double clock_ms(void);

/* In ms since the machine started, suspended or not, by the process's own clock, as in /proc. */
double clock_boot_ms(void);

/* A time of process_clock_ns on the process's own CLOCK_MONOTONIC, for system calls. */
struct timespec clock_for_kernel(uint64_t ns);

/* Pauses the thread for `microseconds`, less than a second; shorter if a signal comes. */
void clock_pause_us(long microseconds);

/* Finds the kernel's function and the process's namespace: when the library is loaded, and in the child of a fork,
 * perhaps in another namespace. */
void clock_begin(void);

#endif
