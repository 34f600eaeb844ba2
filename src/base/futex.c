#include "futex.h"

#include "clock.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

void futex_wait_until(_Atomic uint32_t *word, uint32_t value, uint64_t until_ns)
{
	const struct timespec until = clock_for_kernel(until_ns);
	int saved = errno;

	syscall(SYS_futex, word, FUTEX_WAIT_BITSET, value, &until, NULL, FUTEX_BITSET_MATCH_ANY);
	errno = saved;
}

void futex_wake(_Atomic uint32_t *word, int count)
{
	int saved = errno;

	syscall(SYS_futex, word, FUTEX_WAKE, count, NULL, NULL, 0);
	errno = saved;
}
