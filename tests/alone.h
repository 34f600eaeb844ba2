/*
 * A world of its own for a test whose programs find each other through /proc: so that it finds no other test's, such as of another
 * build that is tested at the same time, nor anything that the user runs.
 */
#ifndef TESTS_ALONE_H
#define TESTS_ALONE_H

#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOT_PERMITTED 200 /* more than any test has cases that fail */

static int end_of(pid_t child)
{
	int status = 1;

	waitpid(child, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/* In a child of the one that has made the namespaces. */
static void begin_alone(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 || mount("proc", "/proc", "proc", 0, NULL) < 0)
		_exit(NOT_PERMITTED);
}

/* At the beginning of main: the rest runs in a child's child, in namespaces of processes and of mounts. Where that is not
 * permitted, it runs in the world as it is. */
static void live_alone(void)
{
	pid_t outer = fork();
	int end = outer > 0 ? end_of(outer) : NOT_PERMITTED;

	if (outer != 0 && end == NOT_PERMITTED)
		return;
	if (outer != 0)
		_exit(end);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (unshare(CLONE_NEWPID | CLONE_NEWNS) < 0)
		_exit(NOT_PERMITTED);
	pid_t inner = fork();

	if (inner != 0)
		_exit(inner > 0 ? end_of(inner) : NOT_PERMITTED);
	begin_alone();
}

/* RUN_TESTS_IN of tests/cases.h in such a world. */
#define RUN_TESTS_ALONE(...)                                                                       \
	int main(void)                                                                             \
	{                                                                                          \
		live_alone();                                                                      \
		return run_tests_in(__VA_ARGS__);                                                  \
	}

#endif
