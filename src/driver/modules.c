#include "modules.h"

#include "gpu/cubin.h"

#include <errno.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

/* Another driver may pass other parameters, so the pointer may be no pointer: memory that is not mapped is not
 * touched. */
static bool is_mapped(const void *start, size_t size)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), first = (uintptr_t)start & ~(page - 1);

	return start && size > 0 && size <= UINTPTR_MAX - (uintptr_t)start &&
	       msync((void *)first, (uintptr_t)start + size - first, MS_ASYNC) == 0;
}

static bool has(const void *cubin, size_t size, bool (*look)(const void *cubin, size_t size))
{
	int saved = errno;
	bool found = is_mapped(cubin, size) && look(cubin, size);

	errno = saved;
	return found;
}

bool modules_launch_kernels(const void *cubin, size_t size)
{
	return has(cubin, size, cubin_launches_kernels);
}

bool modules_have_managed_variables(const void *cubin, size_t size)
{
	return has(cubin, size, cubin_has_managed_variables);
}
