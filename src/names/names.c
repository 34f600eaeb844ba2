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

/* NULL if there is no symbol for the code at `place`. */
static ElfW(Sym) *symbol_of(const void *place)
{
	Dl_info info;
	void *symbol = NULL;

	return dladdr1(place, &info, &symbol, RTLD_DL_SYMENT) ? symbol : NULL;
}

/* As if we did not define the symbols: the dynamic linker goes on to the next library. With an old driver there are
 * hundreds of symbols, all in one table: so the table becomes writable once. */
static void remove_symbols(ElfW(Sym) *symbols[], size_t count)
{
	const uintptr_t size = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t first = UINTPTR_MAX, end = 0;

	for (size_t i = 0; i < count; i++) {
		uintptr_t at = (uintptr_t)&symbols[i]->st_value;

		first = at < first ? at : first;
		end = at >= end ? at + 1 : end;
	}
	first &= -size;
	if (count > 0 && mprotect((void *)first, end - first, PROT_READ | PROT_WRITE) == 0) {
		for (size_t i = 0; i < count; i++)
			symbols[i]->st_value = 0;
		mprotect((void *)first, end - first, PROT_READ); /* as before: the Makefile links with separate-code */
	}
}

static void find_all(void *library)
{
	static ElfW(Sym) *missing[COUNT];
	size_t count = 0;

	for (size_t i = 0; i < COUNT; i++) {
		void *function = library ? dlsym(library, names[i]) : NULL;
		bool is_there = function && !own_image_has(function);

		missing[count] = is_there ? NULL : symbol_of(names_slots[i]);
		count += missing[count] != NULL;
		names_slots[i] = is_there ? function : (void *)call_missing;
	}
	remove_symbols(missing, count);
}

void names_open(void)
{
	static bool is_open;
	int saved = errno;

	if (!is_open)
		find_all(dlopen(names_library, RTLD_LAZY | RTLD_NOLOAD));
	is_open = true;
	errno = saved;
}

void *names_early(unsigned int number)
{
	names_open();
	return names_slots[number];
}
