#include "threads.h"

#include "base/identity.h"
#include "base/proc.h"

#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

#ifndef PTRACE_GET_RSEQ_CONFIGURATION
#define PTRACE_GET_RSEQ_CONFIGURATION 0x420f
struct __ptrace_rseq_configuration {
	uint64_t rseq_abi_pointer;
	uint32_t rseq_abi_size, signature, flags, pad;
};
#endif

/* Process ids are smaller (the kernel's PID_MAX_LIMIT). */
#define PIDS_MAX (1 << 22)

/* How far up its stack a thread's callers are looked for. */
#define STACK_WORDS 2048

/* --- the dynamic linker ---------------------------------------------------------------------------------------------- */

/* Whether a thread is in the dynamic linker, or in a library that it is just starting. Its locks are recursive:
 * pthread_mutex_t's lock, count, owner, users and kind, 32 bits each. */
static bool loader_is_busy(const struct target *target)
{
	static uint32_t words[4096];
	size_t size = target->loader_data.end - target->loader_data.start;
	bool busy = false;

	if (size > sizeof words)
		size = sizeof words;
	if (!memory_read(&target->memory, target->loader_data.start, words, size))
		return true;
	for (size_t i = 0; i + 4 < size / sizeof words[0] && !busy; i += 2)
		busy = (words[i] == 1 || words[i] == 2) && words[i + 1] - 1 < 1000 && words[i + 2] - 1 < PIDS_MAX &&
		       words[i + 3] == 1 && words[i + 4] == PTHREAD_MUTEX_RECURSIVE;
	return busy;
}

/* --- system calls ---------------------------------------------------------------------------------------------------- */

/* Calls in which threads wait, holding nothing that loading needs, and which can be made again. The kernel goes on with
 * the first kind by itself; the second kind it breaks off, and what has then to be repeated is told the whole of its
 * time again. What it calls restart_syscall is the rest of a timed wait that was interrupted before; it goes on with that
 * as long as nobody but us comes between. */
static const struct {
	long number;
	bool goes_on;
} waits[] = {
	{SYS_futex, true},          {SYS_read, true},          {SYS_readv, true},
	{SYS_recvfrom, true},       {SYS_recvmsg, true},       {SYS_accept4, true},
	{SYS_ppoll, true},          {SYS_pselect6, true},      {SYS_nanosleep, true},
	{SYS_clock_nanosleep, true}, {SYS_wait4, true},        {SYS_waitid, true},
	{SYS_rt_sigsuspend, true},  {SYS_accept, true},        {SYS_epoll_pwait, false},
	{SYS_rt_sigtimedwait, false}, {SYS_restart_syscall, false},
#ifdef __x86_64__
	{SYS_poll, true},           {SYS_select, true},        {SYS_pause, true},
	{SYS_epoll_wait, false},
#endif
#ifdef SYS_epoll_pwait2
	{SYS_epoll_pwait2, false},
#endif
};

#define WAITS (sizeof waits / sizeof waits[0])

static bool is_wait(long call, bool *goes_on)
{
	bool found = false;

	for (size_t i = 0; i < WAITS; i++) {
		if (waits[i].number == call) {
			found = true;
			*goes_on = waits[i].goes_on;
		}
	}
	return found;
}

bool threads_may_repeat(long call)
{
	bool goes_on;

	return is_wait(call, &goes_on);
}

/* --- choosing ------------------------------------------------------------------------------------------------------ */

/* The smaller, the better. */
enum rank {
	RANK_WAITS,
	RANK_WAITS_IN_DRIVER, /* CUDA's own threads, or one that waits for the GPU: it may hold a lock of the driver's */
	RANK_RUNS,
	RANK_BREAKS_OFF, /* last: its call would end early if we died before we have seen to that */
	RANK_NONE
};

struct candidate {
	pid_t thread;
	enum rank rank;
};

static bool is_in_driver(const struct target *target, uint64_t stack)
{
	uint64_t words[256];
	bool found = false;

	if (memory_read(&target->memory, stack, words, sizeof words)) {
		for (size_t i = 0; i < sizeof words / sizeof words[0] && !found; i++)
			found = range_has(&target->driver, words[i]);
	}
	return found;
}

static enum rank rank_waiting(const struct target *target, long call, uint64_t stack)
{
	enum rank rank = RANK_NONE;
	bool goes_on = false;

	if (is_wait(call, &goes_on) && !goes_on)
		rank = RANK_BREAKS_OFF;
	else if (goes_on)
		rank = is_in_driver(target, stack) ? RANK_WAITS_IN_DRIVER : RANK_WAITS;
	return rank;
}

/* Where a thread that sleeps in a system call is. */
struct asleep {
	long call;
	unsigned long stack, instruction;
};

/* -1 where it is gone, 0 where it runs, 1 where it sleeps: the number of the system call, its six arguments, the stack
 * pointer and the instruction. */
static int look_at(const struct target *target, pid_t thread, struct asleep *asleep)
{
	char text[256];
	int answer = -1;

	proc_read_text(text, sizeof text, "/proc/%d/task/%d/syscall", (int)target->pid, (int)thread);
	if (strncmp(text, "running", 7) == 0)
		answer = 0;
	else if (sscanf(text, "%ld %*x %*x %*x %*x %*x %*x %lx %lx", &asleep->call, &asleep->stack,
	                &asleep->instruction) == 3)
		answer = 1;
	return answer;
}

static enum rank rank_of(const struct target *target, pid_t thread)
{
	struct asleep asleep;
	int answer = look_at(target, thread, &asleep);
	enum rank rank = answer == 0 ? RANK_RUNS : RANK_NONE;

	if (answer > 0)
		rank = rank_waiting(target, asleep.call, asleep.stack);
	return rank;
}

static int compare(const void *a, const void *b)
{
	const struct candidate *left = a, *right = b;

	return (left->rank > right->rank) - (left->rank < right->rank);
}

static DIR *open_threads(pid_t pid)
{
	char path[64];

	snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
	return opendir(path);
}

static size_t list(const struct target *target, DIR *directory, struct candidate **candidates)
{
	size_t count = 0, room = 0;
	struct dirent *entry;

	*candidates = NULL;
	while ((entry = readdir(directory))) {
		struct candidate candidate = {.thread = atoi(entry->d_name), .rank = RANK_NONE};

		if (candidate.thread > 0)
			candidate.rank = rank_of(target, candidate.thread);
		if (candidate.rank != RANK_NONE && count == room) {
			struct candidate *larger = realloc(*candidates, (room = 2 * room + 64) * sizeof *larger);

			if (!larger)
				break;
			*candidates = larger;
		}
		if (candidate.rank != RANK_NONE)
			(*candidates)[count++] = candidate;
	}
	return count;
}

size_t threads_choose(const struct target *target, pid_t **threads)
{
	DIR *directory = open_threads(target->pid);
	struct candidate *candidates = NULL;
	size_t count = directory && !loader_is_busy(target) ? list(target, directory, &candidates) : 0;

	*threads = count > 0 ? malloc(count * sizeof **threads) : NULL;
	if (!*threads)
		count = 0;
	if (count > 0)
		qsort(candidates, count, sizeof *candidates, compare);
	for (size_t i = 0; i < count; i++)
		(*threads)[i] = candidates[i].thread;
	free(candidates);
	if (directory)
		closedir(directory);
	return count;
}

bool threads_is_outside(const struct target *target, uint64_t inner_id, const struct range *range)
{
	DIR *directory = open_threads(target->pid);
	bool outside = directory;
	struct dirent *entry;
	struct asleep asleep;

	while (outside && (entry = readdir(directory))) {
		pid_t thread = atoi(entry->d_name);

		if (thread > 0 && identity_inner(thread) == inner_id)
			outside = look_at(target, thread, &asleep) > 0 && !range_has(range, asleep.instruction);
	}
	if (directory)
		closedir(directory);
	return outside;
}

/* --- judging --------------------------------------------------------------------------------------------------------- */

/* Code that takes the locks in question, or is called while they are held; a way back. */
static bool is_unsafe_code(const struct target *target, uint64_t address)
{
	bool unsafe = range_has(&target->loader.range, address) || range_has(&target->libc.range, address) ||
	              range_has(&target->driver, address);

	for (size_t i = 0; i < target->gap_count && !unsafe; i++)
		unsafe = range_has(&target->gaps[i], address);
	for (size_t i = 0; i < target->allocator_count && !unsafe; i++)
		unsafe = range_has(&target->allocators[i], address);
	return unsafe;
}

/* A lock of the C library's or the loader's, or of one of its heaps, which starts with its lock. Heaps are aligned to
 * their size, 64 MiB, or 8 MiB where they consist of huge pages. */
static bool is_library_lock(const struct target *target, uint64_t address)
{
	const uint64_t heap = 8 << 20, head = 4096;

	return range_has(&target->libc.range, address) || range_has(&target->loader.range, address) ||
	       (address >= heap && address % heap < head);
}

/* Others' locks can be anywhere: who waits for one has been called by the library. */
static bool is_called_by_library(const struct target *target, uint64_t stack)
{
	uint64_t words[64];
	bool found = !memory_read(&target->memory, stack, words, sizeof words);

	for (size_t i = 0; i < sizeof words / sizeof words[0] && !found; i++) {
		found = range_has(&target->driver, words[i]);
		for (size_t j = 0; j < target->allocator_count && !found; j++)
			found = range_has(&target->allocators[j], words[i]);
	}
	return found;
}

static bool waits_for_library_lock(const struct target *target, const struct machine_state *state)
{
	return is_library_lock(target, machine_argument(state, 0)) ||
	       is_called_by_library(target, machine_stack(state));
}

/* Whether a signal handler is running that began in unsafe code. Each handler returns to the same place in libc. */
static bool interrupted_unsafe_code(const struct target *target, const struct machine_state *state)
{
	uint64_t stack = machine_stack(state) & ~UINT64_C(7);
	static uint64_t words[STACK_WORDS];
	const struct mapping *mapping = memory_find(&target->memory, stack);
	size_t count = mapping ? (mapping->end - stack) / sizeof words[0] : 0;
	bool found = false;

	if (count > STACK_WORDS)
		count = STACK_WORDS;
	if (count == 0 || !memory_read(&target->memory, stack, words, count * sizeof words[0]))
		return true;
	for (size_t i = 0; i < count && !found; i++) {
		if (words[i] == target->signal_return)
			found = is_unsafe_code(target, machine_interrupted_by_signal(&target->memory,
			                                                             stack + i * sizeof words[0]));
	}
	return found;
}

/* In a restartable sequence: the kernel would no longer restart it when the thread is back. */
static bool is_in_sequence(const struct target *target, pid_t thread)
{
	struct __ptrace_rseq_configuration registered = {0};
	const uint64_t sequence = 8; /* where struct rseq has the one that is running */
	uint64_t running = 0;

	if (ptrace(PTRACE_GET_RSEQ_CONFIGURATION, thread, sizeof registered, &registered) > 0 &&
	    registered.rseq_abi_pointer != 0)
		memory_read(&target->memory, registered.rseq_abi_pointer + sequence, &running, sizeof running);
	return running != 0;
}

/* The wait for a lock, or one that was interrupted before, by a SIGSTOP say: it was the same kind then, for all we know. */
static bool may_wait_for_lock(long call)
{
	return call == SYS_futex || call == SYS_restart_syscall;
}

bool threads_may_borrow(const struct target *target, pid_t thread, const struct machine_state *state)
{
	long call = machine_interrupted_call(state);
	bool goes_on, safe = machine_is_native(state);

	if (call >= 0)
		safe = safe && is_wait(call, &goes_on) && !(may_wait_for_lock(call) && waits_for_library_lock(target, state));
	else
		safe = safe && !is_unsafe_code(target, machine_instruction(state)) && !is_in_sequence(target, thread);
	return safe && !loader_is_busy(target) && !interrupted_unsafe_code(target, state);
}
