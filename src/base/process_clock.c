#include "process_clock.h"

#include "proc.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define NS_PER_SECOND UINT64_C(1000000000)

uint64_t process_clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS_PER_SECOND + (uint64_t)now.tv_nsec;
}

/* How far the clock of a process's time namespace is ahead of the host's. */
static int64_t ahead_of_host(const char *process)
{
	char text[128];
	long long seconds, ns;

	proc_read_text(text, sizeof text, "/proc/%s/timens_offsets", process);
	const char *line = strstr(text, "monotonic");

	return line && sscanf(line, "monotonic %lld %lld", &seconds, &ns) == 2 ? seconds * (int64_t)NS_PER_SECOND + ns : 0;
}

int64_t process_clock_offset(pid_t pid)
{
	char process[16];

	snprintf(process, sizeof process, "%d", (int)pid);
	return ahead_of_host(process) - ahead_of_host("self");
}
