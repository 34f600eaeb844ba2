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

/* At the beginning of main: the rest runs in a child, in namespaces of processes and of mounts. Where that is not permitted, it
 * runs in the world as it is. */
static void live_alone(void)
{
	int status = 1;

	if (unshare(CLONE_NEWPID | CLONE_NEWNS) < 0)
		return;
	pid_t child = fork();

	if (child != 0) {
		waitpid(child, &status, 0);
		_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 || mount("proc", "/proc", "proc", 0, NULL) < 0)
		_exit(1);
}

#endif
