/*
 * For tests of two programs that share a GPU, each a process of its own: what they share with the test, which is their parent.
 * A check of the parent's fails the running cmocka test.
 */
#ifndef TESTS_PAIR_H
#define TESTS_PAIR_H

#include "child.h"
#include "state/segment/segment.h"

#include <stdatomic.h>
#include <stdint.h>

#define PAIR_PROGRAMS 2

extern struct pair {
	atomic_bool ends, pauses; /* all; the first one */
	struct {
		atomic_bool is_ready;
		atomic_uint done; /* of what it does again and again */
		atomic_uint idle; /* so often nothing may have been in flight, as it works */
	} programs[PAIR_PROGRAMS];
} *pair;

extern struct child pair_children[PAIR_PROGRAMS]; /* pid 0: it has been waited for */

/* --- the programs ---------------------------------------------------------------------------------------------------- */

/* So much more is done; and it is ready. */
void pair_note(unsigned int number, unsigned int more);

/* There is always some work in flight, but while it pauses: so many kernels again and again. */
void pair_work(unsigned int number, unsigned int kernels);

/* --- their parent ---------------------------------------------------------------------------------------------------- */

/* For cmocka. After a failure, children may be left: they are killed. */
int pair_set_up(void **state);
int pair_tear_down(void **state);

/* Once it is ready. One that was left out or has failed ends the test. */
void pair_start(unsigned int number, void (*body)(void));

struct child_end pair_wait_for(unsigned int number);
void pair_finish(unsigned int number);
void pair_finish_both(void);

struct segment_time pair_time_of(unsigned int number);

/* It has been suspended, or its launches held, for so much longer; and it has done so much more. */
void pair_wait_for_aside(unsigned int number, uint64_t more_us);
void pair_wait_for_done(unsigned int number, unsigned int more);

/* So much it has done by now. */
unsigned int pair_done(unsigned int number);

#endif
