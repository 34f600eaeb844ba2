/*
 * A thread of another process that is ours to stop, by ptrace, without signals that it could see.
 *
 * Only this one thread is stopped. Where we die, the kernel lets it go on as it is then.
 */
#ifndef NVTASKSET_ATTACH_TRACEE_H
#define NVTASKSET_ATTACH_TRACEE_H

#include "attach/memory.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct tracee {
	pid_t thread;
	bool is_stopped;
	sigset_t blocked; /* our own mask, before */
};

enum tracee_answer {
	TRACEE_STOPPED, /* as it was asked to */
	TRACEE_GONE,    /* it has ended */
	TRACEE_LATE     /* it has not stopped in time */
};

/* Makes the thread ours; it goes on. With `unfiltered` its seccomp filters do not hold while it is ours. -1 with errno:
 * EPERM where the kernel forbids it, ESRCH where it is gone. */
int tracee_seize(struct tracee *tracee, pid_t thread, bool unfiltered);

/* Stops it outside of system calls, or where the kernel decides whether to restart one. */
enum tracee_answer tracee_interrupt(struct tracee *tracee);

/* Lets it go on, to the next system call's begin or end, whichever comes first. */
enum tracee_answer tracee_step(struct tracee *tracee);

/* Lets it go on until the word at `address` in its process, looked at again and again, is not 0 or not there any more, and
 * stops it then. */
enum tracee_answer tracee_run(struct tracee *tracee, const struct memory *memory, uint64_t address);

/* Writes whole words into the memory of a stopped thread, code too. -1 where it cannot. */
int tracee_write(pid_t thread, uint64_t address, const void *from, size_t length);

/* Lets it go for good, from a stop, or as it ends. */
void tracee_release(struct tracee *tracee);

#endif
