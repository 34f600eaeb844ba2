/*
 * A thread of another process that we can stop, by ptrace, without signals visible to the thread.
 *
 * Only this one thread is stopped. If we die, the kernel lets the thread continue in the state of that moment.
 */
#pragma once

#include "attach/memory.h"

#include <signal.h>
#include <sys/types.h>

struct tracee {
	pid_t thread;
	bool is_stopped;
	sigset_t blocked; /* our own mask, before tracee_seize */
};

enum tracee_answer {
	TRACEE_STOPPED, /* stopped, as requested */
	TRACEE_GONE,    /* the thread has ended */
	TRACEE_LATE     /* the thread has not stopped in time */
};

/* Begins to trace the thread, which continues to run. With `unfiltered`, the seccomp filters are suspended meanwhile.
 * -1 with errno: EPERM if the kernel forbids tracing, ESRCH if the thread has ended. */
int tracee_seize(struct tracee *tracee, pid_t thread, bool unfiltered);

/* Stops the thread outside of system calls, or at the point where the kernel decides whether to restart a call. */
enum tracee_answer tracee_interrupt(struct tracee *tracee);

/* Lets the thread run to the begin or end of a system call, whichever comes first. */
enum tracee_answer tracee_step(struct tracee *tracee);

/* Lets the thread run until the word at `address` in the process is not 0, or cannot be read any more, and then stops
 * the thread. The word is polled. */
enum tracee_answer tracee_run(struct tracee *tracee, const struct memory *memory, uint64_t address);

/* Writes whole words into the memory of a stopped thread, also into code. -1 on failure. */
int tracee_write(pid_t thread, uint64_t address, const void *from, size_t length);

/* Ends the tracing of a thread that is stopped or ends. */
void tracee_release(struct tracee *tracee);
