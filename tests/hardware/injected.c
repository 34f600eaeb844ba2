/*
 * A profiler that the driver loads itself (CUDA_INJECTION64_PATH), or the dynamic linker (LD_PRELOAD): hears every launch,
 * and says at the end on standard error how many there were.
 */
#include "tool.h"

#include <stdio.h>
#include <stdlib.h>

__attribute__((visibility("default"))) int InitializeInjection(void);

int InitializeInjection(void)
{
	return tool_subscribe() == 0 && tool_enable_all(true) == 0;
}

/* Before the program has come to CUDA: with LD_PRELOAD. */
__attribute__((constructor)) static void come_early(void)
{
	if (getenv("INJECTED_EARLY"))
		InitializeInjection();
}

__attribute__((destructor)) static void say(void)
{
	fprintf(stderr, "injected: heard %u launches\n", tool_announced());
}
