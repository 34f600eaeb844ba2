/*
 * A library for LD_PRELOAD: counts how often a program opens, closes and asks a device of the kernel driver,
 * and adds up the times. At the program's end, and before an execvp, it appends a row to the file BENCH_CALLS
 * for each kind of call: PROGRAM,CALL,COUNT,US. A control is named by its number, and a new object by its
 * class (nvos.h of open-gpu-kernel-modules).
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define KINDS 512
#define DESCRIPTORS 1024

static struct kind {
	char name[48];
	unsigned int count;
	int64_t ns;
} kinds[KINDS];

static bool is_device[DESCRIPTORS]; /* by the number of a descriptor */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

static void add(const char *name, int64_t since)
{
	int64_t took = now() - since;
	int saved = errno;
	size_t i = 0;

	pthread_mutex_lock(&lock);
	while (i < KINDS - 1 && kinds[i].name[0] && strcmp(kinds[i].name, name) != 0)
		i++;
	snprintf(kinds[i].name, sizeof kinds[i].name, "%s", name);
	kinds[i].count++;
	kinds[i].ns += took;
	pthread_mutex_unlock(&lock);
	errno = saved;
}

static void write_all(void)
{
	const char *path = getenv("BENCH_CALLS");
	FILE *file = path ? fopen(path, "ae") : NULL;

	for (size_t i = 0; file && i < KINDS && kinds[i].name[0]; i++)
		fprintf(file, "%s,%s,%u,%.1f\n", program_invocation_short_name, kinds[i].name, kinds[i].count,
			(double)kinds[i].ns / 1e3);
	if (file)
		fclose(file);
	memset(kinds, 0, sizeof kinds);
}

__attribute__((destructor)) static void finish(void)
{
	write_all();
}

/* --- the calls
 * -------------------------------------------------------------------------------------------------- */

#define EXPORTED __attribute__((visibility("default")))
#define NEXT(name)                                                                                           \
	static __typeof__(name) *next;                                                                       \
	if (!next)                                                                                           \
	*(void **)&next = dlsym(RTLD_NEXT, #name)

static int opened(const char *path, int descriptor, int64_t since)
{
	bool is_nvidia = strncmp(path, "/dev/nvidia", strlen("/dev/nvidia")) == 0;
	char name[48];

	if (is_nvidia) {
		snprintf(name, sizeof name, "open %s%s", path + strlen("/dev/"),
			 descriptor < 0 ? " fails" : "");
		if (descriptor >= 0 || strlen(path) > strlen("/dev/nvidia00"))
			add(name, since);
		else
			add("open nvidiaN fails", since);
	}
	if (descriptor >= 0 && descriptor < DESCRIPTORS)
		is_device[descriptor] = is_nvidia;
	return descriptor;
}

#define OPEN(function)                                                                                       \
	EXPORTED int function(const char *path, int flags, ...)                                              \
	{                                                                                                    \
		NEXT(function);                                                                              \
		va_list arguments;                                                                           \
		int64_t since = now();                                                                       \
                                                                                                             \
		va_start(arguments, flags);                                                                  \
		int mode = va_arg(arguments, int);                                                           \
                                                                                                             \
		va_end(arguments);                                                                           \
		return opened(path, next(path, flags, mode), since);                                         \
	}

#undef open64
OPEN(open)
OPEN(open64)

EXPORTED int close(int descriptor)
{
	NEXT(close);
	bool was_device = descriptor >= 0 && descriptor < DESCRIPTORS && is_device[descriptor];
	int64_t since = now();
	int result = next(descriptor);

	if (was_device) {
		is_device[descriptor] = false;
		add("close", since);
	}
	return result;
}

/* The numbers: nv_escape.h. The third and the fourth word: nvos.h. */
enum { NUMBER_FREE = 0x29, NUMBER_CONTROL = 0x2a, NUMBER_ALLOC = 0x2b };

static void name_call(char name[48], unsigned long request, const uint32_t *words)
{
	unsigned int number = _IOC_NR(request);

	if (_IOC_TYPE(request) == 'F' && number == NUMBER_CONTROL)
		snprintf(name, 48, "control %08x", words[2]);
	else if (_IOC_TYPE(request) == 'F' && number == NUMBER_ALLOC)
		snprintf(name, 48, "alloc %04x", words[3]);
	else if (_IOC_TYPE(request) == 'F' && number == NUMBER_FREE)
		snprintf(name, 48, "free");
	else
		snprintf(name, 48, "ioctl %lx", request);
}

EXPORTED int ioctl(int descriptor, unsigned long request, ...)
{
	NEXT(ioctl);
	char name[48] = "";
	va_list arguments;

	va_start(arguments, request);
	void *argument = va_arg(arguments, void *);

	va_end(arguments);
	if (descriptor >= 0 && descriptor < DESCRIPTORS && is_device[descriptor])
		name_call(name, request, argument);
	int64_t since = now();
	int result = next(descriptor, request, argument);

	if (name[0])
		add(name, since);
	return result;
}

EXPORTED int execvp(const char *file, char *const arguments[])
{
	NEXT(execvp);
	write_all();
	return next(file, arguments);
}
