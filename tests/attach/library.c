/*
 * Takes the place of our library in tests of attaching: reports which thread called it and how many bytes it got, and
 * is unloaded again, so that it can be loaded any number of times. It uses what libraries use: thread-local storage,
 * memory, the loader.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FLAG_DIRECTION 0x400 /* clear, as functions expect it */

__attribute__((visibility("default"))) const char *nvtaskset_attached(const char *told);

static __thread char counted[64] __attribute__((tls_model("initial-exec")));

const char *nvtaskset_attached(const char *told)
{
	static char refusal[64];
	char *memory = malloc(100000);
	Dl_info info;

	if (memory)
		memset(memory, 1, 100000);
	free(memory);
	if (__builtin_ia32_readeflags_u64() & FLAG_DIRECTION)
		return "called with the direction flag set";
	if (!memory || !dladdr(refusal, &info))
		return "no memory, or no loader";
	snprintf(counted, sizeof counted, "called on thread %d, told %zu words\a", (int)gettid(), strlen(told) / strlen("word "));
	memcpy(refusal, counted, sizeof refusal);
	errno = ENOTNAM;
	/* Overwrites registers, which must be restored in the borrowed thread. */
	__asm__ volatile("vpxor %%ymm0, %%ymm0, %%ymm0; vpxor %%ymm7, %%ymm7, %%ymm7; fninit" ::: "xmm0", "xmm7", "memory");
	return refusal;
}
