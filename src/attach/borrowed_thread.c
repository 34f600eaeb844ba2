#include "borrowed_thread.h"

#include "attach/moment.h"
#include "base/identity.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

int borrowed_lost(const struct borrowed_thread *borrowed)
{
	return error_set(borrowed->error, "pid %d: it has ended", (int)borrowed->target->pid);
}

/* -1 with the reason. */
static int expect_stop(const struct borrowed_thread *borrowed, enum tracee_answer answer)
{
	int result = 0;

	if (answer == TRACEE_GONE)
		result = borrowed_lost(borrowed);
	else if (answer == TRACEE_LATE)
		result = error_set(borrowed->error, "pid %d: its thread %d waits for a lock that another thread holds; "
		                                    "once it gets the lock, it will load the library",
		                   (int)borrowed->target->pid, (int)borrowed->tracee.thread);
	return result;
}

/* --- the thread's memory ------------------------------------------------------------------------------------------ */

/*
 * Layout of the memory:
 *
 *   0         the code, executable and not writable
 *   PAGE      the thread's extended registers
 *   ROOM_AT   the room
 */
#define PAGE 4096
#define ROOM_AT (PAGE + MACHINE_EXTENDED_MAX)

_Static_assert(sizeof(struct machine_code) <= PAGE, "one page");

/* Lets the thread run to the begin of the next system call, and then to the end of the call. */
static int step_through_call(struct borrowed_thread *borrowed, int64_t *result)
{
	uint64_t instruction;
	int stopped = expect_stop(borrowed, tracee_step(&borrowed->tracee));

	if (stopped == 0)
		stopped = expect_stop(borrowed, tracee_step(&borrowed->tracee));
	if (stopped < 0)
		return -1;
	return machine_look(borrowed->tracee.thread, &instruction, result) < 0 ? borrowed_lost(borrowed) : 0;
}

static int call_at(struct borrowed_thread *borrowed, uint64_t instruction, long number, const uint64_t arguments[6],
                   int64_t *result)
{
	if (machine_set_call(borrowed->tracee.thread, &borrowed->state, instruction, number, arguments) < 0)
		return borrowed_lost(borrowed);
	return step_through_call(borrowed, result);
}

/* The thread's first step for us. Signals are blocked only now, with a way back that unblocks the signals. */
static int call_first(struct borrowed_thread *borrowed, const uint64_t arguments[6], int64_t *result)
{
	const uint64_t all = UINT64_MAX;
	pid_t thread = borrowed->tracee.thread;

	if (machine_set_call(thread, &borrowed->state, borrowed->way + MACHINE_WAY_GETS, SYS_mmap, arguments) < 0 ||
	    ptrace(PTRACE_SETSIGMASK, thread, sizeof all, &all) < 0)
		return borrowed_lost(borrowed);
	return step_through_call(borrowed, result);
}

static bool is_error(int64_t result)
{
	return result < 0 && result > -PAGE;
}

static int get_memory(struct borrowed_thread *borrowed)
{
	const uint64_t arguments[6] = {
		0, borrowed->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, UINT64_MAX, 0};
	int64_t result = 0;
	int pid = (int)borrowed->target->pid;

	if (call_first(borrowed, arguments, &result) < 0)
		return -1;
	if (is_error(result))
		return error_set(borrowed->error, "pid %d: has no %zu KiB of memory for us: %s: see its limits, with "
		                                  "'prlimit --pid %d'",
		                 pid, (size_t)borrowed->size / 1024, strerror((int)-result), pid);
	borrowed->memory = (uint64_t)result;
	borrowed->room = borrowed->memory + ROOM_AT;
	return gap_note_memory(borrowed->tracee.thread, borrowed->way, borrowed->memory) < 0 ? borrowed_lost(borrowed)
	                                                                                      : 0;
}

static int get_code(struct borrowed_thread *borrowed)
{
	const uint64_t arguments[6] = {
		borrowed->memory, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, UINT64_MAX, 0};
	struct machine_code code;
	int64_t result = 0;

	if (call_at(borrowed, borrowed->way + MACHINE_WAY_GETS, SYS_mmap, arguments, &result) < 0)
		return -1;
	if (is_error(result))
		return error_set(borrowed->error, "pid %d: may not run new code: %s", (int)borrowed->target->pid,
		                 strerror((int)-result));
	machine_make_code(&code, &borrowed->state, borrowed->way, borrowed->memory, borrowed->size,
	                  borrowed->memory + PAGE);
	return tracee_write(borrowed->tracee.thread, borrowed->memory, &code, sizeof code) < 0 ? borrowed_lost(borrowed)
	                                                                                        : 0;
}

/* The thread's last step for us, in the way back. A thread that has ended does not matter. */
static void give_memory(struct borrowed_thread *borrowed)
{
	const uint64_t arguments[6] = {borrowed->memory, borrowed->size};
	struct error *error = borrowed->error;
	int64_t result;

	borrowed->error = NULL;
	call_at(borrowed, borrowed->way + MACHINE_WAY_GIVES, SYS_munmap, arguments, &result);
	borrowed->error = error;
}

/* --- borrowing ---------------------------------------------------------------------------------------------------- */

/* If our stop made a call fail, has the call made again, from now on and also if we die. */
static void mend_call(struct borrowed_thread *borrowed)
{
	bool goes_on;

	if (moment_is_wait(machine_interrupted_call(&borrowed->state), &goes_on) &&
	    machine_restart_call(&borrowed->state))
		machine_restore(borrowed->tracee.thread, &borrowed->state);
}

static bool is_code(const struct target *target, uint64_t address)
{
	struct machine_code_head head;

	return memory_read(&target->memory, address, &head, sizeof head) && head.mark == MACHINE_CODE_MARK;
}

static bool is_in_code(const struct target *target, const struct machine_state *state)
{
	return is_code(target, machine_instruction(state) / PAGE * PAGE);
}

/* Whether the thread still works for an attacher that has died: in the code, or with a stack in the code's memory. */
static bool is_borrowed(const struct target *target, const struct machine_state *state)
{
	const struct mapping *stack = memory_find(&target->memory, machine_stack(state));

	return is_in_code(target, state) || (stack && is_code(target, stack->start - PAGE));
}

/* If the thread waits in the code for the attacher that has died, ends the wait. */
static enum borrow_answer end_other_wait(struct borrowed_thread *borrowed)
{
	if (is_in_code(borrowed->target, &borrowed->state))
		machine_end_wait(&borrowed->state);
	return BORROW_RETRY;
}

/* Saves the thread's state, and writes the way back if the moment is good. */
static enum borrow_answer lay_way(struct borrowed_thread *borrowed)
{
	const struct target *target = borrowed->target;
	pid_t thread = borrowed->tracee.thread;
	struct machine_way way;

	borrowed->is_saved = machine_save(thread, &borrowed->state) == 0;
	if (borrowed->is_saved)
		mend_call(borrowed);
	if (borrowed->is_saved && is_borrowed(target, &borrowed->state))
		return end_other_wait(borrowed);
	if (!borrowed->is_saved || !moment_is_good(target, thread, &borrowed->state))
		return BORROW_RETRY;
	machine_make_way(&way, &borrowed->state, identity_inner(thread), borrowed->size);
	borrowed->way = gap_lay(target, thread, &way);
	if (borrowed->way || errno != ENOSPC)
		return borrowed->way ? BORROW_DONE : BORROW_RETRY;
	error_set(borrowed->error, "pid %d: its libraries leave no room for what attaching needs: start it by "
	                           "nvtaskset", (int)target->pid);
	return BORROW_FAILED;
}

static enum borrow_answer take_over(struct borrowed_thread *borrowed)
{
	enum borrow_answer answer = lay_way(borrowed);

	if (answer == BORROW_DONE && (get_memory(borrowed) < 0 || get_code(borrowed) < 0))
		answer = BORROW_FAILED;
	return answer;
}

/* If only this thread has ended, or has filters that keep us out, others remain. */
static enum borrow_answer seize(struct borrowed_thread *borrowed, pid_t thread)
{
	pid_t pid = borrowed->target->pid;
	enum borrow_answer answer = BORROW_RETRY;
	bool unfiltered;

	if (target_check_filters(pid, thread, &unfiltered, borrowed->error) == 0) {
		if (tracee_seize(&borrowed->tracee, thread, unfiltered) == 0) {
			answer = BORROW_DONE;
		} else if (errno != ESRCH) {
			target_explain(pid, errno, borrowed->error);
			answer = BORROW_FAILED;
		}
	}
	return answer;
}

enum borrow_answer borrowed_open(struct borrowed_thread *borrowed, const struct target *target, pid_t thread,
                                 size_t room, bool *stopped, struct error *error)
{
	borrowed->target = target;
	borrowed->error = error;
	borrowed->is_saved = *stopped = false;
	borrowed->way = borrowed->memory = 0;
	borrowed->size = (ROOM_AT + room + PAGE - 1) / PAGE * PAGE;
	enum borrow_answer answer = seize(borrowed, thread);

	if (answer == BORROW_DONE) {
		*stopped = tracee_interrupt(&borrowed->tracee) == TRACEE_STOPPED;
		answer = *stopped ? take_over(borrowed) : BORROW_RETRY;
		if (answer != BORROW_DONE)
			borrowed_close(borrowed);
	}
	return answer;
}

/* The state is restored at a stop where the kernel decides whether to restart a call, so the thread continues as
 * without the stop. A thread that still runs waits for a lock; we leave the thread running. */
void borrowed_close(struct borrowed_thread *borrowed)
{
	if (borrowed->is_saved && borrowed->memory && borrowed->tracee.is_stopped)
		give_memory(borrowed);
	bool is_stopped = borrowed->tracee.is_stopped;

	if (borrowed->way || !is_stopped)
		tracee_interrupt(&borrowed->tracee);
	if (borrowed->is_saved && is_stopped && borrowed->tracee.is_stopped &&
	    machine_restore(borrowed->tracee.thread, &borrowed->state) == 0 && borrowed->way)
		gap_clear(borrowed->tracee.thread, borrowed->way);
	tracee_release(&borrowed->tracee);
}

/* --- using it ----------------------------------------------------------------------------------------------------- */

int borrowed_write(const struct borrowed_thread *borrowed, size_t at, const void *from, size_t length)
{
	return memory_write(&borrowed->target->memory, borrowed->room + at, from, length) ? 0 : borrowed_lost(borrowed);
}

int borrowed_call(struct borrowed_thread *borrowed, long number, const uint64_t arguments[6], int64_t *result)
{
	return call_at(borrowed, borrowed->memory + MACHINE_CODE_CALLS, number, arguments, result);
}

int borrowed_load(struct borrowed_thread *borrowed, size_t stack, size_t flag, bool *is_back)
{
	static unsigned char extended[MACHINE_EXTENDED_MAX];
	const struct range code = {borrowed->memory, borrowed->memory + PAGE};
	size_t extended_size = machine_copy_extended(&borrowed->state, extended);
	uint64_t instruction = 0;
	int64_t result;

	if (!memory_write(&borrowed->target->memory, borrowed->memory + PAGE, extended, extended_size) ||
	    machine_set_loading(borrowed->tracee.thread, &borrowed->state, borrowed->memory, borrowed->room,
	                        borrowed->room + stack) < 0)
		return borrowed_lost(borrowed);
	if (expect_stop(borrowed, tracee_run(&borrowed->tracee, &borrowed->target->memory, borrowed->room + flag)) < 0)
		return -1;
	if (machine_look(borrowed->tracee.thread, &instruction, &result) < 0)
		return borrowed_lost(borrowed);
	*is_back = !range_has(&code, instruction);
	borrowed->is_saved = !*is_back;
	/* Only the end of the code would restore these registers. */
	return *is_back || machine_restore_extended(borrowed->tracee.thread, &borrowed->state) == 0
	               ? 0
	               : borrowed_lost(borrowed);
}
