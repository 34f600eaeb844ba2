/*
 * A profiler that the driver loads itself (CUDA_INJECTION64_PATH), or the dynamic linker (LD_PRELOAD): counts every
 * launch, and prints the number on standard error at the end.
 */
#include "tool.h"

#include <stdio.h>
#include <stdlib.h>

__attribute__((visibility("default"))) int InitializeInjection(void);

int InitializeInjection(void)
{
	return tool_subscribe() == 0 && tool_enable_all(true) == 0;
}

/* With LD_PRELOAD: before the program uses CUDA. */
__attribute__((constructor)) static void come_early(void)
{
	if (getenv("INJECTED_EARLY"))
		InitializeInjection();
}

__attribute__((destructor)) static void say(void)
{
	fprintf(stderr, "injected: heard %u launches\n", tool_announced());
}
