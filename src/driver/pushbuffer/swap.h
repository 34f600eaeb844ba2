/*
 * Replaces a word of memory that may be used for other work as soon as a second word, the guard, has changed.
 *
 * The look at the guard and the store are one restartable sequence (rseq(2)): a thread that is interrupted in between
 * begins again with the look. A virtual processor that its host takes away in between is not noticed; the word must
 * also be as expected, so the store is lost on memory that is used again, unless the new use has the same word there.
 */
#ifndef NVTASKSET_DRIVER_PUSHBUFFER_SWAP_H
#define NVTASKSET_DRIVER_PUSHBUFFER_SWAP_H

#include <stdbool.h>
#include <stdint.h>

/* Whether threads of this process have restartable sequences: x86-64, glibc 2.35. Call once, outside of the launch
 * path. */
bool swap_prepare(void);

enum swap_outcome {
	SWAP_DONE,
	SWAP_GUARD_CHANGED, /* the guard is not `unchanged`; nothing was written */
	SWAP_OTHER_WORD,    /* the word is not `old`; nothing was written */
};

/* From any thread, after swap_prepare has returned true. No system call, no lock. */
enum swap_outcome swap_while(const volatile uint64_t *guard, uint64_t unchanged, volatile uint32_t *word, uint32_t old,
                             uint32_t new);

#endif
