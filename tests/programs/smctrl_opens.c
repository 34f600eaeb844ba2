/* libsmctrl for a program that opens it by name, as Python does. */
#include <libsmctrl.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static void *look_up(const char *name)
{
	void *library = dlopen("libsmctrl.so", RTLD_NOW);
	void *function = library ? dlsym(library, name) : NULL;

	if (!function) {
		fprintf(stderr, "%s\n", dlerror());
		exit(EXIT_FAILURE);
	}
	return function;
}

#define OPENED(function, parameters, arguments)                                                    \
	int function parameters                                                                    \
	{                                                                                          \
		return ((__typeof__(&(function)))look_up(#function)) arguments;                    \
	}

OPENED(libsmctrl_set_global_mask, (uint64_t mask), (mask))
OPENED(libsmctrl_set_stream_mask, (void *stream, uint64_t mask), (stream, mask))
OPENED(libsmctrl_set_next_mask, (uint64_t mask), (mask))
OPENED(libsmctrl_make_mask, (uint64_t *result, uint32_t low, uint32_t high_exclusive), (result, low, high_exclusive))
