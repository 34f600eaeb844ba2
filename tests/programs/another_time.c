/*
 * To be preloaded: stands for libfaketime. The program's time is TIME_AHEAD seconds ahead, and goes TIME_RATE times as fast.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_SECOND INT64_C(1000000000)

#pragma GCC visibility push(default)
int clock_gettime(clockid_t clock, struct timespec *now);
int nanosleep(const struct timespec *pause, struct timespec *rest);
int usleep(useconds_t microseconds);
#pragma GCC visibility pop

static int64_t number_of(const char *name, int64_t otherwise)
{
	const char *text = getenv(name);

	return text ? strtoll(text, NULL, 10) : otherwise;
}

static int64_t rate(void)
{
	return number_of("TIME_RATE", 1);
}

/* From the first look on. */
int clock_gettime(clockid_t clock, struct timespec *now)
{
	static int64_t first[16];
	int status = (int)syscall(SYS_clock_gettime, clock, now);
	int64_t time = now->tv_sec * NS_PER_SECOND + now->tv_nsec, *begin = &first[clock % 16];

	if (*begin == 0)
		*begin = time;
	time = *begin + (time - *begin) * rate() + number_of("TIME_AHEAD", 0) * NS_PER_SECOND;
	*now = (struct timespec){.tv_sec = time / NS_PER_SECOND, .tv_nsec = time % NS_PER_SECOND};
	return status;
}

int nanosleep(const struct timespec *pause, struct timespec *rest)
{
	int64_t ns = (pause->tv_sec * NS_PER_SECOND + pause->tv_nsec) / rate();
	const struct timespec shorter = {.tv_sec = ns / NS_PER_SECOND, .tv_nsec = ns % NS_PER_SECOND};

	return (int)syscall(SYS_nanosleep, &shorter, rest);
}

int usleep(useconds_t microseconds)
{
	return nanosleep(&(struct timespec){.tv_sec = microseconds / 1000000, .tv_nsec = microseconds % 1000000 * 1000}, NULL);
}
