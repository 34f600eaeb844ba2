/*
 * Bells: a launch of a lender wakes the threads of borrowers (time/thread.h), and the threads see that the lender came
 * back. A program of a higher priority wakes programs of a lower priority likewise. A borrower raises a number in the
 * own segment when launches become wide (state/segment/segment.h, segment_count_opening). A launch that finds a new
 * number wakes the thread once: by a word in shared memory, for which a wake needs no right to write.
 *
 * No wake is certain. The launch may miss a number of the same moment, and a thread that is about to sleep does not
 * hear. Each borrower looks at lenders in intervals as well. A hostile borrower costs each launch a system call.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define BELLS 16 /* further borrowers are not woken */

struct bell {
	const _Atomic uint64_t *openings; /* the number */
	_Atomic uint32_t *rings;          /* the thread's futex */
};

/* From here on, launches ring these bells, at most BELLS. The memory of former bells stays readable. For our thread
 * alone. */
void bells_set(const struct bell list[], unsigned int count);

bool bells_are_there(void);

/* A launch has been counted. From any thread; errno is preserved. */
void bells_ring(void);
