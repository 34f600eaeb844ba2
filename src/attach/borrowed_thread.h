/*
 * A borrowed thread of another process: makes system calls and runs code for us, and then continues as if nothing had
 * happened.
 *
 * Nothing is written to the thread's stack. Before the first step for us, the way back (machine.h) is written into a
 * gap behind a library's code (below). The first step allocates memory for all else: the code for the thread, a stack,
 * and the data of calls. If we die, the thread frees the memory and comes back by itself.
 */
#pragma once

#include "attach/machine.h"
#include "attach/target.h"
#include "attach/tracee.h"
#include "base/error.h"

#include <sys/types.h>

struct borrowed_thread {
	const struct target *target;
	struct tracee tracee;
	bool is_saved;
	struct machine_state state; /* the thread's, before the borrowing; large */
	uint64_t way;               /* address of the way back; 0 before the way is written */
	uint64_t memory, size;      /* allocated by the thread for us; 0: no memory */
	uint64_t room;              /* address in `memory`, for the caller's use */
	struct error *error;        /* receives reasons */
};

enum borrow_answer {
	BORROW_DONE,      /* borrowed, and stopped: for the caller to close */
	BORROW_RETRY, /* the thread cannot be borrowed now: try the next, or later */
	BORROW_FAILED     /* no thread can be borrowed, with the reason */
};

/* Borrows the thread, with `room` zeroed bytes. `stopped` says whether the thread was stopped. */
enum borrow_answer borrowed_open(struct borrowed_thread *borrowed, const struct target *target, pid_t thread,
                                 size_t room, bool *stopped, struct error *error);

/* Gives the thread back as before. A thread that does not stop any more comes back by itself. */
void borrowed_close(struct borrowed_thread *borrowed);

/* The following return -1 with the reason if the thread has ended, or waits for something for too long. */

/* Writes at the offset `at` in the room. */
int borrowed_write(const struct borrowed_thread *borrowed, size_t at, const void *from, size_t length);

/* Makes a system call. The result of a failed call is the kernel's negative error number. */
int borrowed_call(struct borrowed_thread *borrowed, long number, const uint64_t arguments[6], int64_t *result);

/* Runs the loading code (machine.h) until the word at `flag` is not 0. `stack` (its end) and `flag` are offsets in the
 * room, which begins with the request. `is_back`: the thread was already on the way back; no more calls are possible,
 * and the thread may have freed the memory. */
int borrowed_load(struct borrowed_thread *borrowed, size_t stack, size_t flag, bool *is_back);

/* Sets the reason "it has ended" for a failed step. Always -1. */
int borrowed_lost(const struct borrowed_thread *borrowed);

/* --- gap.c -------------------------------------------------------------------------------------------------------- */

/*
 * Places for a thread's way back (machine.h): the gaps behind libraries' code.
 *
 * A library's code ends somewhere within a page. The rest of the page is zero, executable and unused: the linker has
 * put nothing there, and no program refers to the bytes. So the way back is safe there, with any stack of the thread
 * and any work of other threads; and to restore the gap, we write zeros. Only the process's own copy of the page is
 * written to.
 *
 * If an attacher dies, the way back stays, since the thread may still need the way. A later attacher takes the place
 * again once the thread does not need the way.
 */

/* Writes a way back for its owner into a gap. `thread` must be stopped, traced by us, and not in a gap. Returns the
 * address; 0 with errno, ENOSPC if there is no room. */
uint64_t gap_lay(const struct target *target, pid_t thread, const struct machine_way *way);

/* Writes the thread's memory for us into the way back, needed as long as the memory exists. -1: thread has ended. */
int gap_note_memory(pid_t thread, uint64_t way, uint64_t memory);

/* Restores the zeros. */
void gap_clear(pid_t thread, uint64_t way);
