/*
 * Replaces a word of memory as long as two more words, `guard` and `life`, are as expected. With a changed guard, the
 * memory may be used for foreign work; with a changed life, the memory of the word may be gone.
 *
 * The looks at life and guard and the store are one restartable sequence (rseq(2)): a thread that is interrupted in
 * between begins again with the looks. A virtual processor taken away by its host is not noticed. So the word must be
 * as expected, too: in memory with new contents, the store takes place only if the new word is equal.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Whether threads of this process have restartable sequences: glibc 2.35, Linux 5.10. Not for the launch path. */
bool swap_prepare(void);

struct swap {
	const volatile uint64_t *life, *guard;
	uint64_t alive, unchanged; /* the values of both; guard and word are touched only while `life` is `alive` */
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

/* After a life was changed: after the return, no thread stores a word for the life before. The caller does not wait
 * for threads that are stopped. A system call. */
void swap_end_all(void);
