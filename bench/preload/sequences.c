/*
 * A library for LD_PRELOAD: says that there are restartable sequences. Valgrind has none, and then our library
 * notes no launch (driver/pushbuffer/swap.c). Valgrind runs a single thread at a time, and the simulated GPU uses no
 * memory again: an interrupted sequence does no harm.
 */
#include <dlfcn.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

#pragma GCC visibility push(default)

extern const unsigned int __rseq_size;
const unsigned int __rseq_size = 32;

long syscall(long number, ...)
{
	static long (*real)(long, ...);
	long values[6];
	va_list list;

	va_start(list, number);
	for (int i = 0; i < 6; i++)
		values[i] = va_arg(list, long);
	va_end(list);
	if (!real)
		real = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
	if (number == SYS_membarrier)
		return 0;
	return real(number, values[0], values[1], values[2], values[3], values[4], values[5]);
}
