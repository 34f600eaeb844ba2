/*
 * Replaces a word of memory that may be used for other work as soon as a second word, the guard, has changed, and may be
 * gone as soon as a third one, the life, has.
 *
 * The looks at life and guard and the store are one restartable sequence (rseq(2)): a thread that is interrupted in
 * between begins again with the looks. A virtual processor that its host takes away in between is not noticed; the word
 * must also be as expected, so the store is lost on memory that is used again, unless the new use has the same word there.
 */
#ifndef NVTASKSET_DRIVER_PUSHBUFFER_SWAP_H
#define NVTASKSET_DRIVER_PUSHBUFFER_SWAP_H

#include <stdbool.h>
#include <stdint.h>

/* Whether threads of this process have restartable sequences: glibc 2.35, Linux 5.10. Call it outside of the launch path. */
bool swap_prepare(void);

struct swap {
	const volatile uint64_t *life, *guard;
	uint64_t alive, unchanged; /* what these must be; `guard` and `word` are not touched unless `life` is */
	volatile uint32_t *word;
	uint32_t old, new;
};

enum swap_outcome {
	SWAP_DONE,
	SWAP_LOOK_DIFFERS, /* life or guard; nothing was written */
	SWAP_OTHER_WORD,   /* the word is not `old`; nothing was written */
};

/* From any thread, after swap_prepare has returned true. No system call, no lock. */
enum swap_outcome swap_while(const struct swap *swap);

/* After a life was changed: once this has returned, no thread stores anything after a look at the life before. It does
 * not wait for threads that are stopped. A system call. */
void swap_end_all(void);

#endif
