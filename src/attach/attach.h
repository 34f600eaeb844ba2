/*
 * Loads our library into a process that runs already and was not prepared for it (docs/facts.md, "Loading").
 *
 * One of its threads is borrowed for that, for some milliseconds; the others never stop. The thread loads the library
 * on a stack of its own from memory of its own, so nothing depends on the process's files or namespaces, and nothing is
 * written to memory that was there before, its stack least of all; then it goes on where it was: registers, signal mask,
 * errno, and the system call in which it slept, with the time that was left. At every moment of it the thread would come
 * back by itself if we died, and give up what it has got for us; only its epoll_wait or sigwait might then have been cut
 * short, as under any debugger, and behind some library's code, where nobody looks, some bytes might not be zero (gap.h).
 * The same where it has to come back because we got no processor for a second.
 *
 * The process notices nothing but the library, one more mapping, and the library's own descriptor. What its limits do not
 * let it have is a reason to refuse.
 */
#ifndef NVTASKSET_ATTACH_ATTACH_H
#define NVTASKSET_ATTACH_ATTACH_H

#include "base/error.h"

#include <sys/types.h>

struct attach_report {
	pid_t thread;       /* that was borrowed; 0 where the process had the library already */
	unsigned int tries; /* how many threads were stopped until one could be */
	double seconds;     /* for how long the borrowed one was */
};

/* Loads the library file `path`, which refers to no other but the C library, and tells it `told`. Does nothing where the
 * process has a segment already. -1 with the reason, and the process is as it was; only where a lock inside it is not given
 * up in 10 seconds the library may still come later. Not for several threads at once: it waits for children, and blocks
 * SIGCHLD. */
int attach_load(pid_t pid, const char *path, const char *told, struct attach_report *report, struct error *error);

/* Gives a process a segment of its own that has an ancestor's, and has not come to CUDA: with what that one's says now, and
 * without our library, which will find it. In the same way, and with the same promises. */
int attach_give_segment(pid_t pid, struct attach_report *report, struct error *error);

#endif
