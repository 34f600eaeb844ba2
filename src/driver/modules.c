#include "modules.h"

#include "base/log.h"
#include "cubin.h"
#include "shim/strict.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

static struct segment segment;

void modules_use(const struct segment *wanted)
{
	segment = *wanted;
}

/* Our reading of the driver's words may be wrong on another driver: what is not mapped is not touched. */
static bool is_mapped(const void *start, size_t size)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), first = (uintptr_t)start & ~(page - 1);

	return start && size > 0 && size <= UINTPTR_MAX - (uintptr_t)start &&
	       msync((void *)first, (uintptr_t)start + size - first, MS_ASYNC) == 0;
}

void modules_loaded(const void *cubin, size_t size)
{
	static _Atomic bool warned;
	const char *reason = segment_reason_text(SEGMENT_LAUNCHED_BY_KERNELS);
	int saved = errno;

	if (is_mapped(cubin, size) && cubin_launches_kernels(cubin, size)) {
		strict_refuse(reason);
		segment_count_reason(&segment, SEGMENT_LAUNCHED_BY_KERNELS);
		if (!atomic_exchange_explicit(&warned, true, memory_order_relaxed))
			log_warning("%s", reason);
	}
	errno = saved;
}
