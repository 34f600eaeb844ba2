#include "clock.h"

#include <time.h>

double clock_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

void clock_pause_us(long microseconds)
{
	const struct timespec pause = {.tv_nsec = microseconds * 1000};

	nanosleep(&pause, NULL);
}
