#include "clock.h"

#include "proc.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NS_PER_SECOND INT64_C(1000000000)

#ifdef __aarch64__
#define READER "__kernel_clock_gettime"
#else
#define READER "__vdso_clock_gettime"
#endif

typedef int clock_reader(clockid_t clock, struct timespec *now);

static int ask_kernel(clockid_t clock, struct timespec *now)
{
	return (int)syscall(SYS_clock_gettime, clock, now);
}

static _Atomic(clock_reader *) reader = ask_kernel;
static _Atomic int64_t ahead; /* of the host's clock, in ns */

static int64_t read_clock(clockid_t clock)
{
	struct timespec now;

	atomic_load_explicit(&reader, memory_order_relaxed)(clock, &now);
	return now.tv_sec * NS_PER_SECOND + now.tv_nsec;
}

uint64_t process_clock_ns(void)
{
	return (uint64_t)(read_clock(CLOCK_MONOTONIC) - atomic_load_explicit(&ahead, memory_order_relaxed));
}

double clock_ms(void)
{
	return (double)process_clock_ns() / 1e6;
}

double clock_boot_ms(void)
{
	return (double)read_clock(CLOCK_BOOTTIME) / 1e6;
}

struct timespec clock_for_kernel(uint64_t ns)
{
	int64_t offset = atomic_load_explicit(&ahead, memory_order_relaxed),
	        time = ns > INT64_MAX ? INT64_MAX : (int64_t)ns;

	if (__builtin_add_overflow(time, offset, &time))
		time = INT64_MAX;
	return (struct timespec){.tv_sec = time / NS_PER_SECOND, .tv_nsec = time % NS_PER_SECOND};
}

void clock_pause_us(long microseconds)
{
	const struct timespec pause = {microseconds / 1000000, microseconds % 1000000 * 1000};
	int saved = errno;

	syscall(SYS_nanosleep, &pause, NULL);
	errno = saved;
}

/* --- beginning ---------------------------------------------------------------------------------------------------- */

/* Whether the process is in the namespace of its children: the kernel tells only the offset of the children's. */
static bool has_childrens_clock(void)
{
	char own[64], childrens[64];

	return proc_read_link(own, sizeof own, "/proc/self/ns/time") &&
	       proc_read_link(childrens, sizeof childrens, "/proc/self/ns/time_for_children") &&
	       strcmp(own, childrens) == 0;
}

static int64_t read_ahead(void)
{
	static const char name[] = "monotonic";
	char text[128]; /* small, for small stacks */
	long long seconds, ns;
	ssize_t length = proc_read_text(text, sizeof text, "/proc/self/timens_offsets");
	const char *line = length > 0 ? strstr(text, name) : NULL;
	bool is_known = line && sscanf(line + sizeof name - 1, "%lld %lld", &seconds, &ns) == 2;

	return is_known && (seconds != 0 || ns != 0) && has_childrens_clock() ? seconds * NS_PER_SECOND + ns : 0;
}

__attribute__((constructor(101))) void clock_begin(void) /* before constructors that may read the time */
{
	clock_reader *function = (clock_reader *)vdso_function(READER);
	int saved = errno;

	atomic_store(&reader, function ? function : ask_kernel);
	atomic_store(&ahead, read_ahead());
	errno = saved;
}
