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

int libsmctrl_set_global_mask(uint64_t mask)
{
	return ((int (*)(uint64_t))look_up(__func__))(mask);
}

int libsmctrl_set_stream_mask(void *stream, uint64_t mask)
{
	return ((int (*)(void *, uint64_t))look_up(__func__))(stream, mask);
}

int libsmctrl_set_next_mask(uint64_t mask)
{
	return ((int (*)(uint64_t))look_up(__func__))(mask);
}

int libsmctrl_make_mask(uint64_t *result, uint32_t low, uint32_t high_exclusive)
{
	return ((int (*)(uint64_t *, uint32_t, uint32_t))look_up(__func__))(result, low, high_exclusive);
}
