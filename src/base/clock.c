#include "clock.h"

#include "proc.h"

#include <stdio.h>
#include <time.h>

#define NS_PER_SECOND UINT64_C(1000000000)

uint64_t process_clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS_PER_SECOND + (uint64_t)now.tv_nsec;
}

double clock_ms(void)
{
	return (double)process_clock_ns() / 1e6;
}

/* How far the clock of a process's time namespace is ahead of the host's. */
static int64_t ahead_of_host(pid_t pid)
{
	char text[64];
	long long seconds, ns;

	proc_find(pid, "timens_offsets", SIZE_MAX, NULL, "monotonic", text, sizeof text);
	return sscanf(text, "%lld %lld", &seconds, &ns) == 2 ? seconds * (int64_t)NS_PER_SECOND + ns : 0;
}

int64_t process_clock_offset(pid_t pid)
{
	return ahead_of_host(pid) - ahead_of_host(0);
}

void clock_pause_us(long microseconds)
{
	const struct timespec pause = {.tv_nsec = microseconds * 1000};

	nanosleep(&pause, NULL);
}
