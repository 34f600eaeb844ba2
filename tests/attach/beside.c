/*
 * Usage: beside WHAT
 *
 * A second thread waits in read, beside the first thread:
 *
 *   filtered  waits in epoll_wait; the second thread has a filter: the kernel ends the program at another system call
 *   ended     has ended
 *
 * Prints "ready" before, and "intact" when a byte has come.
 */
#include "registers.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static int ends[2]; /* for the filtered thread */

static void say(const char *text)
{
	puts(text);
	fflush(stdout);
}

static void filter(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_read, 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = sizeof code / sizeof code[0], .filter = code};

	check(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "a filter");
	check(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0, "a filter");
}

/* Calls the kernel directly: no function of the C library makes a call that the filter does not know. */
static void *wait_filtered(void *unused)
{
	char byte = 0;

	filter();
	check(write(STDOUT_FILENO, "ready\n", 6) == 6, "write");
	check(read(ends[0], &byte, 1) == 1 && byte == 'x', "read");
	syscall(SYS_exit, 0);
	return NULL;
}

static void wait_for_input(void)
{
	struct epoll_event event = {.events = EPOLLIN};
	int events = epoll_create1(0);

	check(epoll_ctl(events, EPOLL_CTL_ADD, STDIN_FILENO, &event) == 0, "epoll_ctl");
	check(epoll_wait(events, &event, 1, -1) == 1, "epoll_wait");
	check(write(ends[1], "x", 1) == 1, "write");
}

static void *wait_alone(void *first)
{
	char byte = 0;

	pthread_join(*(pthread_t *)first, NULL);
	say("ready");
	check(read(STDIN_FILENO, &byte, 1) == 1 && byte == 'x', "read");
	say("intact");
	exit(EXIT_SUCCESS);
}

static void be_filtered(void)
{
	pthread_t thread;

	check(pipe(ends) == 0, "a pipe");
	check(pthread_create(&thread, NULL, wait_filtered, NULL) == 0, "a thread");
	wait_for_input();
	pthread_join(thread, NULL);
	say("intact");
}

static void be_ended(void)
{
	static pthread_t self;
	pthread_t thread;

	self = pthread_self();
	check(pthread_create(&thread, NULL, wait_alone, &self) == 0, "a thread");
	pthread_exit(NULL);
}

int main(int count, char **arguments)
{
	if (count == 2 && strcmp(arguments[1], "filtered") == 0)
		be_filtered();
	else if (count == 2 && strcmp(arguments[1], "ended") == 0)
		be_ended();
	else
		say("Usage: beside WHAT");
	return EXIT_SUCCESS;
}
