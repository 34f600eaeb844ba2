/*
 * Time that never goes backward: CLOCK_MONOTONIC. Containers may have a time namespace, in which it shows another time, so what a
 * process writes must be read by that process's clock.
 */
#ifndef NVTASKSET_CLOCK_H
#define NVTASKSET_CLOCK_H

#include <stdint.h>
#include <sys/types.h>

/* This process's, in ns; in ms with fractions. Makes no system call where the C library reads the clock by itself. */
uint64_t process_clock_ns(void);
double clock_ms(void);

/* What must be added to this process's clock, in ns, for that of process `pid`. 0 if it is not known. */
int64_t process_clock_offset(pid_t pid);

/* Pauses this thread for `microseconds`, less than a second; shorter if a signal comes. */
void clock_pause_us(long microseconds);

#endif
