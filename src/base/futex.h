/*
 * Sleeping until another thread wakes the sleeper, in any process if the word is in shared memory. errno is preserved.
 * No cancellation point; a signal handler ends the sleep. Times are of process_clock_ns.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

/* Sleeps while the word has the value, until woken. May also end early: the caller must look again. */
void futex_wait_until(_Atomic uint32_t *word, uint32_t value, uint64_t until_ns);

/* Wakes at most `count` sleepers. */
void futex_wake(_Atomic uint32_t *word, int count);
