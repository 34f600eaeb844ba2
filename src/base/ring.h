/*
 * A value that is read while being written, without a lock. Values stand in a ring of places. A number, which only
 * rises, says which place is in force: number % places.
 *
 * A writer fills the next place, and then raises the number. A writer that dies in the middle has changed nothing.
 * Writers must exclude each other by other means. A reader copies the place of the number, and then checks whether
 * writers have come round the ring meanwhile: the copy may then mix two values.
 *
 * Places are atomic words, copied relaxed: fences order the words against the number (tests/litmus/ring.litmus).
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Fills a place that is not in force. The caller then publishes the place by raising the number with release. */
static inline void ring_fill(_Atomic uint64_t *place, const uint64_t *words, size_t count)
{
	/* A reader that sees one of the new words must also see the present number. */
	atomic_thread_fence(memory_order_release);
	for (size_t word = 0; word < count; word++)
		atomic_store_explicit(&place[word], words[word], memory_order_relaxed);
}

/* Copies words of the place in force, by a number loaded with acquire. Then ask ring_is_whole. */
static inline void ring_copy(uint64_t *words, const _Atomic uint64_t *place, size_t count)
{
	for (size_t word = 0; word < count; word++)
		words[word] = atomic_load_explicit(&place[word], memory_order_relaxed);
}

/* Whether all words copied since `seen` was loaded belong to a single value. */
static inline bool ring_is_whole(const _Atomic uint64_t *number, uint64_t seen, unsigned int places)
{
	atomic_thread_fence(memory_order_acquire);
	return atomic_load_explicit(number, memory_order_relaxed) - seen < places - 1;
}
