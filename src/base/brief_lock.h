/*
 * A lock for what takes a microsecond, between a program's threads and ours, which nobody waits long for: whoever does not get
 * it within BRIEF_LOCK_NS goes on without, and so do the others at once, until its holder gives it back. So a holder that does
 * not run (stopped in a debugger, interrupted by a signal handler that comes here itself, gone) keeps nobody.
 *
 * All zero is free. errno is preserved. No cancellation point.
 */
#ifndef NVTASKSET_BRIEF_LOCK_H
#define NVTASKSET_BRIEF_LOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define BRIEF_LOCK_NS UINT64_C(10000000)

struct brief_lock {
	_Atomic uint32_t state;
	atomic_bool is_stuck; /* somebody waited in vain */
};

/* False: it was not got; then brief_unlock must not be called. */
bool brief_lock(struct brief_lock *lock);
void brief_unlock(struct brief_lock *lock);

#endif
