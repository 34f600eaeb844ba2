/*
 * Usage: alone WHAT
 *
 * A program of one thread, which is always in the one place that WHAT names. It notices if that ends in a wrong way, or
 * if anything else of the thread has changed. Prints "ready" before, and "intact" afterwards.
 */
#include "registers.h"

#include <dlfcn.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <linux/futex.h>

#define SECONDS 4

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void do_read(void)
{
	char byte = 0;

	check(read(STDIN_FILENO, &byte, 1) == 1 && byte == 'x', "read");
}

/* A wait that starts again after a disturbance near its end takes nearly twice as long. On a busy machine no absolute
 * time can be asserted. So the wait is compared with that of a child, which nobody disturbs. */
static void as_long_as_a_child(void (*wait)(void))
{
	int ends[2];
	double mine = now(), childs;

	check(pipe(ends) == 0, "a pipe");
	pid_t child = fork();

	if (child == 0) {
		wait();
		childs = now() - mine;
		_exit(write(ends[1], &childs, sizeof childs) != sizeof childs);
	}
	wait();
	mine = now() - mine;
	check(read(ends[0], &childs, sizeof childs) == sizeof childs, "a child");
	waitpid(child, NULL, 0);
	check(mine > SECONDS * 0.999, "a wait was cut short");
	check(mine < childs + SECONDS * 0.25, "a wait started over");
	do_read();
}

static void once_nanosleep(void)
{
	const struct timespec time = {.tv_sec = SECONDS};

	check(nanosleep(&time, NULL) == 0, "nanosleep");
}

static void once_poll(void)
{
	check(poll(NULL, 0, SECONDS * 1000) == 0, "poll");
}

static void once_select(void)
{
	struct timeval time = {.tv_sec = SECONDS};

	check(select(0, NULL, NULL, NULL, &time) == 0, "select");
}

static void once_futex(void)
{
	const struct timespec time = {.tv_sec = SECONDS};
	int word = 1;

	check(syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 1, &time, NULL, 0) == -1 && errno == ETIMEDOUT, "futex");
	errno = EXFULL;
}

static void do_epoll(void)
{
	struct epoll_event event = {.events = EPOLLIN};
	int events = epoll_create1(0);

	check(epoll_ctl(events, EPOLL_CTL_ADD, STDIN_FILENO, &event) == 0, "epoll_ctl");
	check(epoll_wait(events, &event, 1, -1) == 1, "epoll_wait");
	close(events);
	do_read();
}

static void do_wait(void)
{
	pid_t child = fork();
	int status = 0;

	if (child == 0) {
		do_read();
		_exit(7);
	}
	check(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 7, "waitpid");
}

static volatile sig_atomic_t handled;

static void handle(int signal)
{
	handled = signal;
}

static void do_pause(void)
{
	signal(SIGUSR1, handle);
	check(pause() == -1 && errno == EINTR && handled == SIGUSR1, "pause");
	errno = EXFULL;
}

/* With another signal mask during the wait. */
static void do_sigsuspend(void)
{
	sigset_t none;

	signal(SIGUSR2, handle);
	sigemptyset(&none);
	check(sigsuspend(&none) == -1 && errno == EINTR && handled == SIGUSR2, "sigsuspend");
	errno = EXFULL;
}

static void do_sigwait(void)
{
	sigset_t wanted;
	int got = 0;

	sigemptyset(&wanted);
	sigaddset(&wanted, SIGUSR2);
	check(sigwait(&wanted, &got) == 0 && got == SIGUSR2, "sigwait");
}

/* In a handler, on a stack for signals. */
static void read_in_handler(int signal)
{
	do_read();
	handled = signal;
}

static void be_ready_to_handle(void)
{
	struct sigaction action = {.sa_handler = read_in_handler, .sa_flags = SA_ONSTACK};

	check(sigaction(SIGUSR1, &action, NULL) == 0, "sigaction");
}

/* The handler interrupts this program's own code, which goes on as if nothing had happened. */
static void do_handler(void)
{
	be_ready_to_handle();
	while (!handled)
		check(registers_hold(100000000), "registers");
}

/* The handler interrupts the C library at any place. */
static void do_handler_in_libc(void)
{
	be_ready_to_handle();
	raise(SIGUSR1);
}

static bool has_input(void)
{
	struct pollfd wanted = {.fd = STDIN_FILENO, .events = POLLIN};

	return poll(&wanted, 1, 0) == 1;
}

static void do_spin(void)
{
	while (!has_input())
		check(registers_hold(100000000), "registers");
	do_read();
}

static int received;

static void take_next(int signal, siginfo_t *info, void *context)
{
	check(info->si_value.sival_int == ++received, "a signal");
}

/* Numbered signals come all the time; none may be missing. */
static void do_signals(void)
{
	struct sigaction action = {.sa_sigaction = take_next, .sa_flags = SA_SIGINFO | SA_RESTART};

	check(sigaction(SIGRTMIN + 1, &action, NULL) == 0, "sigaction");
	while (!has_input())
		check(registers_hold(100000), "registers, with signals");
	do_read();
	/* The signals interrupt poll. */
	errno = EXFULL;
}

static void do_load(void)
{
	while (!has_input()) {
		for (int i = 0; i < 100; i++) {
			void *library = dlopen("libresolv.so.2", RTLD_NOW);

			check(library && dlclose(library) == 0, "a library");
		}
	}
	do_read();
}

/* In a constructor: for others, the thread is inside the dynamic linker. */
static void do_construct(void)
{
	void *library = dlopen("slow.so", RTLD_NOW);

	check(library && dlclose(library) == 0, "a library");
}

static const struct act {
	const char *name;
	void (*act)(void);
	void (*waits)(void); /* in its place: as long as a child */
} acts[] = {
	{.name = "nanosleep", .waits = once_nanosleep}, {.name = "poll", .waits = once_poll},
	{.name = "select", .waits = once_select}, {.name = "futex", .waits = once_futex},
	{"read", do_read, NULL}, {"epoll", do_epoll, NULL}, {"wait", do_wait, NULL}, {"pause", do_pause, NULL},
	{"handler", do_handler, NULL}, {"handler-in-libc", do_handler_in_libc, NULL}, {"spin", do_spin, NULL},
	{"load", do_load, NULL}, {"construct", do_construct, NULL}, {"sigsuspend", do_sigsuspend, NULL},
	{"sigwait", do_sigwait, NULL}, {"signals", do_signals, NULL},
};

/* Does it, and checks what a thread has beside its registers. */
static void do_it(const struct act *act)
{
	static char stack[65536];
	stack_t signals = {.ss_sp = stack, .ss_size = sizeof stack}, signals_after;
	sigset_t mask, mask_after;

	sigemptyset(&mask);
	sigaddset(&mask, SIGUSR2);
	sigaddset(&mask, SIGRTMIN + 3);
	sigprocmask(SIG_SETMASK, &mask, NULL);
	sigaltstack(&signals, NULL);
	errno = EXFULL;
	if (act->waits)
		as_long_as_a_child(act->waits);
	else
		act->act();
	check(errno == EXFULL, "errno");
	sigprocmask(SIG_SETMASK, NULL, &mask_after);
	sigaltstack(NULL, &signals_after);
	for (int signal = 1; signal < SIGRTMAX; signal++)
		check(sigismember(&mask, signal) == sigismember(&mask_after, signal), "the signal mask");
	check(signals_after.ss_sp == stack && signals_after.ss_size == sizeof stack && signals_after.ss_flags == 0,
	      "the stack for signals");
}

int main(int count, char **arguments)
{
	bool found = false;

	for (size_t i = 0; count == 2 && i < sizeof acts / sizeof acts[0]; i++) {
		if (strcmp(arguments[1], acts[i].name) == 0) {
			found = true;
			puts("ready");
			fflush(stdout);
			do_it(&acts[i]);
		}
	}
	puts(found ? "intact" : "Usage: alone WHAT");
	return found ? EXIT_SUCCESS : EXIT_FAILURE;
}
