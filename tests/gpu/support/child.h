/* A part of a test in a process of its own: because it is expected to die, or because it must start CUDA anew. */
#ifndef TESTS_CHILD_H
#define TESTS_CHILD_H

#include <stdbool.h>
#include <sys/types.h>

struct child {
	pid_t pid;
	int errors; /* its standard error */
	long *pauses; /* before its exit; LONG_MAX: it did not exit yet */
};

struct child_end {
	int status; /* as from waitpid */
	long pauses; /* in its exit */
	char errors[1024];
};

/* Runs `body` in a fork of this process, where a failed check of cmocka's ends the process, and then exit(0). */
struct child child_start(void (*body)(void));
struct child_end child_wait(struct child *child);

struct child_end child_run(void (*body)(void));

/* Fails the test if the child's body did not return, and shows the child's output; or if its exit has waited. */
void child_assert_passed(const struct child_end *end);

/* Both. */
void child_passes(void (*body)(void));

/* A case of tests/cases.h that is such a body. */
#define TEST_IN_CHILD(name) TEST_BY(child_passes, name)

/* The same for a body to which nvtaskset attaches; skips the test if that is not possible. */
void child_run_to_attach(void (*body)(void));

#endif
