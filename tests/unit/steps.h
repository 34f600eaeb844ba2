/* For unit tests: a child that works by single machine instructions (ptrace). */
#ifndef NVTASKSET_TESTS_STEPS_H
#define NVTASKSET_TESTS_STEPS_H

#include "../cases.h"

#include <sys/ptrace.h>

/* Waits until the child has stopped. */
static inline pid_t steps_stopped(pid_t child)
{
	int status;

	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSTOPPED(status));
	return child;
}

static inline void steps_begin(void)
{
	ptrace(PTRACE_TRACEME, 0, NULL, NULL);
	raise(SIGSTOP);
}

/* Goes on by `count` instructions; false if the child ended before. */
static inline bool steps_take(pid_t child, unsigned long count)
{
	int status = 0;

	for (unsigned long i = 0; i < count; i++) {
		assert_int_equal(ptrace(PTRACE_SINGLESTEP, child, NULL, NULL), 0);
		assert_int_equal(waitpid(child, &status, 0), child);
		if (WIFEXITED(status))
			return false;
		assert_true(WIFSTOPPED(status));
	}
	return true;
}

/* Up to the end. */
static inline void steps_finish(pid_t child)
{
	assert_int_equal(ptrace(PTRACE_DETACH, child, NULL, NULL), 0);
	assert_ends_well(child);
}

#endif
