/* Time that only goes forward, for waiting a bounded while. */
#ifndef NVTASKSET_CLOCK_H
#define NVTASKSET_CLOCK_H

/* Milliseconds since some moment of the past, with fractions. */
double clock_ms(void);

/* Pauses this thread, at most for so long: less than a second, and less where a signal comes. */
void clock_pause_us(long microseconds);

#endif
