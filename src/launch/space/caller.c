#include "caller.h"

#include "driver/functions.h"

#include <execinfo.h>
#include <link.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH 48

/* A search for the loaded object that an address lies in. */
struct search {
	uintptr_t address;
	const char *name; /* of the object's file, without its directory; NULL if there is no such object */
	uintptr_t base;
};

static bool holds(const struct dl_phdr_info *object, uintptr_t address)
{
	bool found = false;

	for (unsigned int i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &object->dlpi_phdr[i];

		found = found || (segment->p_type == PT_LOAD && address - object->dlpi_addr - segment->p_vaddr < segment->p_memsz);
	}
	return found;
}

static int look(struct dl_phdr_info *object, size_t size, void *data)
{
	struct search *search = data;

	(void)size;
	if (holds(object, search->address)) {
		const char *slash = strrchr(object->dlpi_name, '/');

		search->name = slash ? slash + 1 : object->dlpi_name;
		search->base = object->dlpi_addr;
	}
	return search->name != NULL;
}

static struct search find(const void *address)
{
	struct search search = {.address = (uintptr_t)address};

	dl_iterate_phdr(look, &search);
	return search;
}

static bool begins(const char *name, const char *with)
{
	return strncmp(name, with, strlen(with)) == 0;
}

/* The stack, innermost first: our frames (and a sanitizer's), the driver's, perhaps the CUDA runtime's, then the
 * caller's. */
bool caller_is_cublas(void)
{
	static const char ours;
	const struct link_map *library = driver_library();
	uintptr_t driver_base = library ? library->l_addr : 0;
	void *frames[DEPTH];
	int depth = backtrace(frames, DEPTH);
	struct search own = find(&ours), caller = {.name = NULL};
	bool in_driver = false;

	for (int i = 0; i < depth && !caller.name; i++) {
		struct search frame = find(frames[i]);

		in_driver = in_driver || (frame.name && frame.base == driver_base);
		if (in_driver && frame.name && frame.base != own.base && frame.base != driver_base &&
		    !begins(frame.name, "libcudart"))
			caller = frame;
	}
	return !caller.name || begins(caller.name, "libcublas");
}
