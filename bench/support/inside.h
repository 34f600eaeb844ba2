/*
 * For programs that have the library in them (bench.mk), since nothing else can do with it what they measure.
 */
#ifndef INSIDE_H
#define INSIDE_H

#include "bench.h"
#include "driver/channels/channels.h"
#include "driver/functions.h"

#include <dlfcn.h>

/* Of src/shim/entry_attached.c. */
const char *nvtaskset_attached(const char *argument);

/* The library begins, as in a running program. */
static inline void inside_attach(void)
{
	const char *refusal = nvtaskset_attached("");

	if (refusal)
		bench_fail("%s", refusal);
}

/* Only its part that finds channels does; before bench_open. */
static inline void inside_watch_channels(void)
{
	struct error error;

	if (!dlopen("libcuda.so.1", RTLD_NOW))
		bench_fail("%s", dlerror());
	if (driver_resolve("libcuda.so.1", &error) < 0 || channels_watch(&error) < 0)
		bench_fail("%s", error.reason);
}

#endif
