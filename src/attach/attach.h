/*
 * Loads our library into a running process that was not prepared for it (docs/internals/facts.md, "Loading").
 *
 * A thread of the process is borrowed for some milliseconds; the other threads never stop. The borrowed thread loads
 * the library on a stack of its own, from memory of its own. So nothing depends on the process's files or namespaces,
 * and no older memory is written to, the thread's own stack included. Then the thread continues as before, with its
 * registers, signal mask and errno, and in the system call of its sleep, with the time that was left.
 *
 * If we die at any moment, the thread comes back by itself and frees the memory allocated for us. Two things can then
 * differ: an epoll_wait or sigwait of the thread may end early, as under any debugger, and some unused bytes behind a
 * library's code may not be zero (borrowed_thread.h, gap.c). The same holds if we get no processor for a second and the
 * thread comes back without us.
 *
 * The process sees nothing but the library, one more mapping, and the library's own descriptor. If the process's limits
 * do not allow these, we refuse to attach.
 */
#pragma once

#include "base/error.h"

#include <sys/types.h>

struct attach_report {
	pid_t thread;       /* the borrowed thread; 0 if the process had the library already */
	unsigned int tries; /* threads that were stopped, with the borrowed thread */
	double seconds;     /* how long the borrowed thread was borrowed */
};

/* Loads the library file `path`, which may depend on no library but the C library, and passes `argument` to its entry.
 * Does nothing if our library is at work in the process already. -1 with the reason; the process is then as before, but
 * the library may still come later if a lock inside the process is held for more than 10 seconds. For one thread at a
 * time: until the return, SIGCHLD is blocked in the caller, and stops of the borrowed thread come by waitpid. */
int attach_load(pid_t pid, const char *path, const char *argument, struct attach_report *report, struct error *error);

/* Gives a process a segment (the memory of a partition: state/segment/segment.h) of its own, with the content of the
 * shared segment of an ancestor. Does nothing if the process has its own segment already. For a process without CUDA:
 * our library is not loaded, and finds the segment later. The promises are the same as for attach_load. */
int attach_give_segment(pid_t pid, struct attach_report *report, struct error *error);
