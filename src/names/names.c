#include "names.h"

#include "base/own_image.h"
#include "driver/cuda.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define NAME(name) #name,

static const char *const names[] = {
#include "list.h"
};

#define COUNT (sizeof(names) / sizeof(names)[0])

/* In stubs.S, in the same order. At first, each leads to a place in the name's own code. */
extern void *names_slots[COUNT] OWN;

/* For programs that were linked with a name of another driver. */
static CUresult call_missing(void)
{
	return CUDA_ERROR_NOT_SUPPORTED;
}

/* The dynamic linker may have made the addresses of the dynamic section absolute. */
static uintptr_t own_table(int64_t tag)
{
	const ElfW(Dyn) *entry = _DYNAMIC;

	while (entry->d_tag != tag && entry->d_tag != DT_NULL)
		entry++;
	uintptr_t at = entry->d_un.d_ptr, base = (uintptr_t)__ehdr_start;

	return at < base ? base + at : at;
}

/* Of the table of symbols: the chain of the last bucket has the end (see the Makefile). */
static size_t symbol_count(void)
{
	const uint32_t *hash = (const void *)own_table(DT_GNU_HASH);
	const uint32_t *buckets = hash + 4 + 2 * hash[2], *chains = buckets + hash[0], first = hash[1];
	uint32_t last = first;

	for (uint32_t i = 0; i < hash[0]; i++)
		last = buckets[i] > last ? buckets[i] : last;
	while (!(chains[last - first] & 1))
		last++;
	return last + 1;
}

/* Where the code of a symbol is beside a place. */
static int compare_places(const void *symbol, const void *place)
{
	const ElfW(Sym) *code = symbol;
	uintptr_t at = (uintptr_t)*(void *const *)place - (uintptr_t)__ehdr_start;

	return at < code->st_value ? 1 : -(at >= code->st_value + code->st_size);
}

/* As if we did not define the symbols of the places, which ascend: the dynamic linker goes on to the next library.
 * An old driver lacks many names, and dladdr searches all symbols for each name. */
static void remove_symbols(void *const places[], size_t count)
{
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	ElfW(Sym) *symbols = (void *)own_table(DT_SYMTAB), *end = symbols + symbol_count();
	void *first = (void *)((uintptr_t)symbols & -page);
	size_t size = (uintptr_t)end - (uintptr_t)first;

	if (count == 0 || mprotect(first, size, PROT_READ | PROT_WRITE) != 0)
		return;
	for (ElfW(Sym) *symbol = symbols; symbol < end; symbol++) {
		if (symbol->st_value != 0 && bsearch(symbol, places, count, sizeof places[0], compare_places))
			symbol->st_value = 0;
	}
	mprotect(first, size, PROT_READ); /* as before: the Makefile links with separate-code */
}

static void find_all(void *library)
{
	static void *missing[COUNT];
	size_t count = 0;

	for (size_t i = 0; i < COUNT; i++) {
		void *function = library ? dlsym(library, names[i]) : NULL;

		if (!function || own_image_has(function)) {
			missing[count++] = names_slots[i];
			function = (void *)call_missing;
		}
		names_slots[i] = function;
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
