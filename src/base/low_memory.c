#include "low_memory.h"

#include <sys/mman.h>

/* Where memory that must lie low is looked for: low enough for the release slots of every version, and far from where
 * programs are loaded; then below what sanitizers take. */
#define LOW_ATTEMPTS 64

static uint64_t low_address(unsigned int attempt)
{
	return attempt < LOW_ATTEMPTS / 2 ? UINT64_C(0x2000000000) + attempt * UINT64_C(0x10000000)
	                                  : UINT64_C(0x20000000) + (attempt - LOW_ATTEMPTS / 2) * UINT64_C(0x1000000);
}

/* The kernel takes another address if memory is in use at this one. */
static void *map_at(uint64_t hint, int file, size_t size)
{
	void *memory = mmap((void *)(uintptr_t)hint, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

void *low_memory_map(int file, size_t size, uint64_t reach)
{
	void *memory = map_at(0, file, size);

	for (unsigned int i = 0; memory && (uintptr_t)memory + size > reach && i < LOW_ATTEMPTS; i++) {
		munmap(memory, size);
		memory = map_at(low_address(i), file, size);
	}
	return memory;
}
