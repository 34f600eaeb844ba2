#include "brief_lock.h"

#include "futex.h"
#include "process_clock.h"

enum state {
	IS_FREE,
	IS_HELD,
	IS_WAITED_FOR /* it is held, and somebody may sleep */
};

static bool take(struct brief_lock *lock)
{
	uint32_t free = IS_FREE;

	return atomic_compare_exchange_strong(&lock->state, &free, IS_HELD);
}

/* Who has slept does not know whether others do. */
static bool take_waiting(struct brief_lock *lock)
{
	return atomic_exchange(&lock->state, IS_WAITED_FOR) == IS_FREE;
}

static bool wait(struct brief_lock *lock)
{
	uint64_t end = process_clock_ns() + BRIEF_LOCK_NS;
	bool is_taken = take_waiting(lock);

	while (!is_taken && !atomic_load(&lock->is_stuck)) {
		futex_wait_until(&lock->state, IS_WAITED_FOR, end);
		is_taken = take_waiting(lock);
		if (!is_taken && process_clock_ns() >= end)
			atomic_store(&lock->is_stuck, true);
	}
	return is_taken;
}

bool brief_lock(struct brief_lock *lock)
{
	return take(lock) || (!atomic_load(&lock->is_stuck) && wait(lock));
}

void brief_unlock(struct brief_lock *lock)
{
	atomic_store(&lock->is_stuck, false);
	if (atomic_exchange(&lock->state, IS_FREE) == IS_WAITED_FOR)
		futex_wake(&lock->state, 1);
}
