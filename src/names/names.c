#include "names.h"

#include "base/own_image.h"
#include "driver/cuda.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

#define NAME(name) #name,

static const char *const names[] = {
#include "list.h"
};

#define COUNT (sizeof(names) / sizeof(names)[0])

/* In stubs.S, in the same order. At first, each leads to a place in its name's own code. */
extern void *names_slots[COUNT] OWN;

/* For programs that were linked with a name of another driver. */
static CUresult call_missing(void)
{
	return CUDA_ERROR_NOT_SUPPORTED;
}

/* As if we did not define the symbol: the dynamic linker goes on to the next library. */
static void remove_symbol(ElfW(Sym) *symbol)
{
	const uintptr_t size = (uintptr_t)sysconf(_SC_PAGESIZE);
	void *page = (void *)((uintptr_t)&symbol->st_value & -size);

	if (mprotect(page, size, PROT_READ | PROT_WRITE) == 0) {
		symbol->st_value = 0;
		mprotect(page, size, PROT_READ); /* as before: the Makefile links with separate-code */
	}
}

/* `place` is in the code of the name. */
static void *remove_name(const void *place)
{
	Dl_info info;
	void *symbol = NULL;

	if (dladdr1(place, &info, &symbol, RTLD_DL_SYMENT) && symbol)
		remove_symbol(symbol);
	return (void *)call_missing;
}

void names_open(void)
{
	static bool is_open;
	int saved = errno;
	void *library = is_open ? NULL : dlopen(names_library, RTLD_LAZY | RTLD_NOLOAD);

	for (size_t i = 0; i < COUNT && !is_open; i++) {
		void *function = library ? dlsym(library, names[i]) : NULL;

		names_slots[i] = function && !own_image_has(function) ? function : remove_name(names_slots[i]);
	}
	is_open = true;
	errno = saved;
}

void *names_early(unsigned int number)
{
	names_open();
	return names_slots[number];
}
