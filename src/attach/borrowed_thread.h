/*
 * A borrowed thread of another process: it makes system calls and runs code for us, and then continues as if it had
 * not.
 *
 * Nothing is written to its stack. Before its first step for us, its way back (machine.h) is written into a gap
 * behind a library's code (gap.h). Its first step allocates memory, which holds all else: the code that it runs, a
 * stack, and the data of calls. If we die, it frees that memory and comes back by itself.
 */
#ifndef NVTASKSET_ATTACH_BORROWED_THREAD_H
#define NVTASKSET_ATTACH_BORROWED_THREAD_H

#include "attach/machine.h"
#include "attach/target.h"
#include "attach/tracee.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct borrowed_thread {
	const struct target *target;
	struct tracee tracee;
	bool is_saved;
	struct machine_state state; /* the thread's, before we borrowed it; large */
	uint64_t way;               /* address of the way back; 0 before it is written */
	uint64_t memory, size;      /* allocated by the thread for us; 0 if none */
	uint64_t room;              /* address in that memory, for the caller's use */
	struct error *error;        /* receives reasons */
};

enum borrow_answer {
	BORROW_DONE,      /* borrowed, and stopped: close it */
	BORROW_RETRY, /* this thread cannot be borrowed now: try another one, or later */
	BORROW_FAILED     /* no thread can be borrowed, with the reason */
};

/* Borrows the thread, with `room` zeroed bytes. `stopped` says whether the thread was stopped. */
enum borrow_answer borrowed_open(struct borrowed_thread *borrowed, const struct target *target, pid_t thread,
                                 size_t room, bool *stopped, struct error *error);

/* Gives the thread back as it was. If it does not stop any more, it comes back by itself. */
void borrowed_close(struct borrowed_thread *borrowed);

/* The following return -1 with the reason if the thread has ended, or waits for something for too long. */

/* Writes at the offset `at` in the room. */
int borrowed_write(const struct borrowed_thread *borrowed, size_t at, const void *from, size_t length);

/* Makes a system call. A call that fails has the kernel's negative error number as its result. */
int borrowed_call(struct borrowed_thread *borrowed, long number, const uint64_t arguments[6], int64_t *result);

/* Runs the loading code (machine.h) until the word at `flag` is not 0. `request`, `stack` (its end) and `flag` are
 * offsets in the room. `is_back` says that the thread was already on its way back: it can make no more calls, and may
 * have freed its memory. */
int borrowed_load(struct borrowed_thread *borrowed, size_t request, size_t stack, size_t flag, bool *is_back);

/* Sets the reason for a failed step: the process has ended. Always -1. */
int borrowed_lost(const struct borrowed_thread *borrowed);

#endif
