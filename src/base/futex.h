/*
 * Sleeping until another thread says so, also one of another process where the word is in shared memory. errno is preserved. No
 * cancellation point; a signal handler that runs meanwhile ends the sleep. Times are of process_clock_ns.
 */
#ifndef NVTASKSET_FUTEX_H
#define NVTASKSET_FUTEX_H

#include <stdatomic.h>
#include <stdint.h>

/* Sleeps while the word has this value, and nobody wakes it. Who uses the word must look again. */
void futex_wait_until(_Atomic uint32_t *word, uint32_t value, uint64_t until_ns);

/* Wakes so many of those that sleep. */
void futex_wake(_Atomic uint32_t *word, int count);

#endif
