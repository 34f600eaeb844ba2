/*
 * Loads our library into a running process that was not prepared for it (facts.md, "Loading").
 *
 * One of the process's threads is borrowed for some milliseconds; the others never stop. The borrowed thread loads
 * the library on a stack of its own, from memory of its own. So nothing depends on the process's files or namespaces,
 * and no memory that existed before is written to, the thread's own stack included. Then the thread continues where
 * it was, with its registers, signal mask and errno, and in the system call in which it slept, with the time that was
 * left.
 *
 * If we die at any moment, the thread comes back by itself and frees the memory that it got for us. Two things can
 * then differ: its epoll_wait or sigwait may end early, as under any debugger, and some bytes behind a library's
 * code, which nobody uses, may not be zero (gap.h). The same holds if we get no processor for a second and the thread
 * comes back without us.
 *
 * The process sees nothing but the library, one more mapping, and the library's own descriptor. If its limits do not
 * allow these, we refuse to attach.
 */
#ifndef NVTASKSET_ATTACH_ATTACH_H
#define NVTASKSET_ATTACH_ATTACH_H

#include "base/error.h"

#include <sys/types.h>

struct attach_report {
	pid_t thread;       /* the borrowed one; 0 if the process had the library already */
	unsigned int tries; /* how many threads were stopped, the borrowed one included */
	double seconds;     /* how long the borrowed thread was borrowed */
};

/* Loads the library file `path`, which may depend on no library but the C library, and passes `argument` to its entry.
 * Does nothing if our library is at work in the process already. -1 with the reason; the process is then as it was,
 * except that the library may still come later if a lock inside the process is held for more than 10 seconds. For one
 * thread at a time: it waits for children, and blocks SIGCHLD. */
int attach_load(pid_t pid, const char *path, const char *argument, struct attach_report *report, struct error *error);

/* Gives a process a segment of its own, with the content of the ancestor's segment that it shares. For a process that
 * has not loaded CUDA: our library is not loaded, and finds the segment later. The promises are those
 * of attach_load. */
int attach_give_segment(pid_t pid, struct attach_report *report, struct error *error);

#endif
