/* Time that never goes backward, for bounded waits. */
#ifndef NVTASKSET_CLOCK_H
#define NVTASKSET_CLOCK_H

/* Milliseconds since a fixed moment, with fractions. */
double clock_ms(void);

/* Pauses this thread for `microseconds`, less than a second; shorter if a signal comes. */
void clock_pause_us(long microseconds);

#endif
