#include "moment.h"

#include <pthread.h>
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

/* How many words of a thread's stack are searched for its callers. */
#define STACK_WORDS 2048

/* --- system calls ------------------------------------------------------------------------------------------------- */

/* A call that failed and is made again waits the full time again. SYS_restart_syscall is the rest of a timed wait
 * interrupted before: made again, the wait continues with the time left, as long as only we interrupted the wait. */
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

bool moment_is_wait(long call, bool *goes_on)
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

/* --- the dynamic linker ------------------------------------------------------------------------------------------- */

/* The dynamic linker's locks are recursive: pthread_mutex_t's lock, count, owner, users and kind, of 32 bits each. */
bool moment_loader_is_busy(const struct target *target)
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

/* --- a thread ----------------------------------------------------------------------------------------------------- */

/* Unsafe code is: code that takes the locks in question, code that is called under these locks, and a way back. */
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

/* Whether the lock belongs to the C library, the dynamic linker, or a heap of the C library, which starts with the
 * lock. Heaps are aligned to their size: 64 MiB, or 8 MiB with huge pages. */
static bool is_library_lock(const struct target *target, uint64_t address)
{
	const uint64_t heap = 8 << 20, head = 4096;

	return range_has(&target->libc.range, address) || range_has(&target->loader.range, address) ||
	       (address >= heap && address % heap < head);
}

/* The locks of the driver and of further allocators can be anywhere: a thread that waits there has been called by the
 * library, as the stack shows. */
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
	return is_library_lock(target, machine_first_argument(state)) ||
	       is_called_by_library(target, machine_stack(state));
}

/* Whether a signal handler runs that interrupted unsafe code. Every handler returns to the same address in libc. */
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

/* Whether the thread is in a restartable sequence: after our work, the kernel would no longer restart the sequence. */
static bool is_in_sequence(const struct target *target, pid_t thread)
{
	struct __ptrace_rseq_configuration registered = {0};
	const uint64_t sequence = 8; /* offset of rseq_cs in struct rseq */
	uint64_t running = 0;

	if (ptrace(PTRACE_GET_RSEQ_CONFIGURATION, thread, sizeof registered, &registered) > 0 &&
	    registered.rseq_abi_pointer != 0)
		memory_read(&target->memory, registered.rseq_abi_pointer + sequence, &running, sizeof running);
	return running != 0;
}

/* The call waits for a lock, or is the rest of an interrupted wait, after a SIGSTOP for example, perhaps for a lock. */
static bool may_wait_for_lock(long call)
{
	return call == SYS_futex || call == SYS_restart_syscall;
}

bool moment_is_good(const struct target *target, pid_t thread, const struct machine_state *state)
{
	long call = machine_interrupted_call(state);
	bool goes_on, safe = machine_is_native(state);

	if (call >= 0)
		safe = safe && moment_is_wait(call, &goes_on) &&
		       !(may_wait_for_lock(call) && waits_for_library_lock(target, state));
	else
		safe = safe && !is_unsafe_code(target, machine_instruction(state)) && !is_in_sequence(target, thread);
	return safe && !moment_loader_is_busy(target) && !interrupted_unsafe_code(target, state);
}
