#include "tracee.h"

#include "base/clock.h"

#include <errno.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>

#ifndef PTRACE_O_SUSPEND_SECCOMP
#define PTRACE_O_SUSPEND_SECCOMP (1 << 21)
#endif

/* How long a step may take: the dynamic linker waits for locks of threads, perhaps for the load of a large library. */
#define PATIENCE_MS 10000

#define LOOK_AGAIN_NS 1000000

#define RUN_PAUSE_US 50

/* The kind of a stop: ptrace(2), "Stopped states". */
enum stop {
	STOP_EVENT, /* at our request, or with the whole process */
	STOP_CALL,
	STOP_SIGNAL
};

int tracee_seize(struct tracee *tracee, pid_t thread, bool unfiltered)
{
	/* TRACESYSGOOD distinguishes stops at system calls from signals, for the kernel too: if we die in a stop, the
	 * kernel delivers the stop's signal to the thread. A stop at a system call must not be taken for one. */
	long options = PTRACE_O_TRACESYSGOOD | (unfiltered ? PTRACE_O_SUSPEND_SECCOMP : 0);
	sigset_t child;

	if (ptrace(PTRACE_SEIZE, thread, NULL, options) < 0)
		return -1;
	tracee->thread = thread;
	tracee->is_stopped = false;
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	pthread_sigmask(SIG_BLOCK, &child, &tracee->blocked);
	return 0;
}

/* Each stop sends SIGCHLD, which ends the pause early. The pause is short, since another thread may get the signal. */
static enum tracee_answer wait_for_stop(const struct tracee *tracee, int *status)
{
	const struct timespec pause = {.tv_nsec = LOOK_AGAIN_NS};
	double end = clock_ms() + PATIENCE_MS;
	pid_t waited = 0;
	sigset_t child;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	while ((waited = waitpid(tracee->thread, status, __WALL | WNOHANG)) == 0 && clock_ms() < end)
		sigtimedwait(&child, NULL, &pause);
	if (waited == 0)
		return TRACEE_LATE;
	return waited > 0 && WIFSTOPPED(*status) ? TRACEE_STOPPED : TRACEE_GONE;
}

static enum stop stop_of(int status)
{
	enum stop stop = STOP_SIGNAL;

	if (status >> 16 == PTRACE_EVENT_STOP)
		stop = STOP_EVENT;
	else if (WSTOPSIG(status) == (SIGTRAP | 0x80))
		stop = STOP_CALL;
	return stop;
}

static bool go_on(struct tracee *tracee, int request, long signal)
{
	tracee->is_stopped = false;
	return ptrace(request, tracee->thread, NULL, signal) == 0;
}

/* Waits for a stop of the wanted kind. After other stops the thread continues, by `request`, and gets its signals. */
static enum tracee_answer wait_for(struct tracee *tracee, enum stop wanted, int request)
{
	int status = 0;
	enum tracee_answer answer = wait_for_stop(tracee, &status);

	while (answer == TRACEE_STOPPED && stop_of(status) != wanted) {
		long signal = stop_of(status) == STOP_SIGNAL ? WSTOPSIG(status) : 0;

		answer = go_on(tracee, request, signal) ? wait_for_stop(tracee, &status) : TRACEE_GONE;
	}
	tracee->is_stopped = answer == TRACEE_STOPPED;
	return answer;
}

/* A thread that is stopped already continues first, and stops again at once. */
enum tracee_answer tracee_interrupt(struct tracee *tracee)
{
	bool asked = ptrace(PTRACE_INTERRUPT, tracee->thread, NULL, NULL) == 0;

	if (asked && tracee->is_stopped)
		asked = go_on(tracee, PTRACE_CONT, 0);
	return asked ? wait_for(tracee, STOP_EVENT, PTRACE_CONT) : TRACEE_GONE;
}

enum tracee_answer tracee_step(struct tracee *tracee)
{
	return go_on(tracee, PTRACE_SYSCALL, 0) ? wait_for(tracee, STOP_CALL, PTRACE_SYSCALL) : TRACEE_GONE;
}

/* Lets the thread continue after a stop by somebody else. */
static enum tracee_answer keep_running(struct tracee *tracee)
{
	int status = 0;
	pid_t waited = waitpid(tracee->thread, &status, __WALL | WNOHANG);
	bool lives = waited == 0;

	if (waited > 0 && WIFSTOPPED(status))
		lives = go_on(tracee, PTRACE_CONT, stop_of(status) == STOP_SIGNAL ? WSTOPSIG(status) : 0);
	return lives ? TRACEE_LATE : TRACEE_GONE;
}

enum tracee_answer tracee_run(struct tracee *tracee, const struct memory *memory, uint64_t address)
{
	enum tracee_answer answer = go_on(tracee, PTRACE_CONT, 0) ? TRACEE_LATE : TRACEE_GONE;
	double end = clock_ms() + PATIENCE_MS;
	bool there = true;
	uint64_t word = 0;

	while (answer == TRACEE_LATE && there && word == 0 && clock_ms() < end) {
		clock_pause_us(RUN_PAUSE_US);
		answer = keep_running(tracee);
		there = memory_read(memory, address, &word, sizeof word);
	}
	return answer == TRACEE_LATE && (!there || word != 0) ? tracee_interrupt(tracee) : answer;
}

int tracee_write(pid_t thread, uint64_t address, const void *from, size_t length)
{
	const unsigned char *bytes = from;
	bool written = true;
	long word;

	for (size_t at = 0; at < length && written; at += sizeof word) {
		memcpy(&word, bytes + at, sizeof word);
		written = ptrace(PTRACE_POKETEXT, thread, address + at, word) == 0;
	}
	return written ? 0 : -1;
}

void tracee_release(struct tracee *tracee)
{
	const struct timespec none = {0};
	sigset_t child;
	int saved = errno;

	ptrace(PTRACE_DETACH, tracee->thread, NULL, NULL);
	/* Removes a pending SIGCHLD from the thread's stops, of no further interest. */
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	if (!sigismember(&tracee->blocked, SIGCHLD)) {
		sigtimedwait(&child, NULL, &none);
		pthread_sigmask(SIG_SETMASK, &tracee->blocked, NULL);
	}
	errno = saved;
}
