#include "loan.h"

#include "attach/gap.h"
#include "attach/moment.h"
#include "attach/waits.h"
#include "base/identity.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

int loan_lost(const struct loan *loan)
{
	return error_set(loan->error, "pid %d: it has ended", (int)loan->target->pid);
}

/* -1 with the reason. */
static int expect_stop(const struct loan *loan, enum tracee_answer answer)
{
	int result = 0;

	if (answer == TRACEE_GONE)
		result = loan_lost(loan);
	else if (answer == TRACEE_LATE)
		result = error_set(loan->error, "pid %d: its thread %d waits for something that another of its threads "
		                                "holds; it goes on, and the library comes when it can",
		                   (int)loan->target->pid, (int)loan->tracee.thread);
	return result;
}

/* --- the thread's memory ------------------------------------------------------------------------------------------- */

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

/* Lets the thread run to the begin of its next system call, and then to that call's end. */
static int step_through_call(struct loan *loan, int64_t *result)
{
	uint64_t instruction;
	int stopped = expect_stop(loan, tracee_step(&loan->tracee));

	if (stopped == 0)
		stopped = expect_stop(loan, tracee_step(&loan->tracee));
	if (stopped < 0)
		return -1;
	return machine_look(loan->tracee.thread, &instruction, result) < 0 ? loan_lost(loan) : 0;
}

static int call_at(struct loan *loan, uint64_t instruction, long number, const uint64_t arguments[6], int64_t *result)
{
	if (machine_set_call(loan->tracee.thread, &loan->state, instruction, number, arguments) < 0)
		return loan_lost(loan);
	return step_through_call(loan, result);
}

/* The thread's first step for us. Its signals are blocked only now, when it has a way back that unblocks them. */
static int call_first(struct loan *loan, const uint64_t arguments[6], int64_t *result)
{
	const uint64_t all = UINT64_MAX;
	pid_t thread = loan->tracee.thread;

	if (machine_set_call(thread, &loan->state, loan->way + MACHINE_WAY_GETS, SYS_mmap, arguments) < 0 ||
	    ptrace(PTRACE_SETSIGMASK, thread, sizeof all, &all) < 0)
		return loan_lost(loan);
	return step_through_call(loan, result);
}

static bool is_error(int64_t result)
{
	return result < 0 && result > -PAGE;
}

static int get_memory(struct loan *loan)
{
	const uint64_t arguments[6] = {
		0, loan->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, UINT64_MAX, 0};
	int64_t result = 0;
	int pid = (int)loan->target->pid;

	if (call_first(loan, arguments, &result) < 0)
		return -1;
	if (is_error(result))
		return error_set(loan->error, "pid %d: has no %zu KiB of memory for us: %s: see its limits, with 'prlimit "
		                              "--pid %d'", pid, (size_t)loan->size / 1024, strerror((int)-result), pid);
	loan->memory = (uint64_t)result;
	loan->room = loan->memory + ROOM_AT;
	return gap_note_memory(loan->tracee.thread, loan->way, loan->memory) < 0 ? loan_lost(loan) : 0;
}

static int get_code(struct loan *loan)
{
	const uint64_t arguments[6] = {
		loan->memory, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, UINT64_MAX, 0};
	struct machine_code code;
	int64_t result = 0;

	if (call_at(loan, loan->way + MACHINE_WAY_GETS, SYS_mmap, arguments, &result) < 0)
		return -1;
	if (is_error(result))
		return error_set(loan->error, "pid %d: may not run new code: %s", (int)loan->target->pid,
		                 strerror((int)-result));
	machine_make_code(&code, &loan->state, loan->way, loan->memory, loan->size, loan->memory + PAGE);
	return tracee_write(loan->tracee.thread, loan->memory, &code, sizeof code) < 0 ? loan_lost(loan) : 0;
}

/* The thread's last step for us, taken in its way back. If the thread has ended, that does not matter. */
static void give_memory(struct loan *loan)
{
	const uint64_t arguments[6] = {loan->memory, loan->size};
	struct error *error = loan->error;
	int64_t result;

	loan->error = NULL;
	call_at(loan, loan->way + MACHINE_WAY_GIVES, SYS_munmap, arguments, &result);
	loan->error = error;
}

/* --- borrowing ----------------------------------------------------------------------------------------------------- */

/* If our stop made a call fail, has the call made again, from now on and also if we die. */
static void mend_call(struct loan *loan)
{
	bool goes_on;

	if (waits_include(machine_interrupted_call(&loan->state), &goes_on) && machine_restart_call(&loan->state))
		machine_restore(loan->tracee.thread, &loan->state);
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

/* Whether the thread still works for an attacher that has died: it runs the code, or uses a stack in the memory that
 * starts with the code. */
static bool is_on_loan(const struct target *target, const struct machine_state *state)
{
	const struct mapping *stack = memory_find(&target->memory, machine_stack(state));

	return is_in_code(target, state) || (stack && is_code(target, stack->start - PAGE));
}

/* If the thread waits in the code for the attacher that has died, ends that wait. */
static enum loan_answer end_other_loan(struct loan *loan)
{
	if (is_in_code(loan->target, &loan->state))
		machine_end_wait(&loan->state);
	return LOAN_ELSEWHERE;
}

/* Saves the thread's state, and writes its way back if this is a good moment. */
static enum loan_answer lay_way(struct loan *loan)
{
	const struct target *target = loan->target;
	pid_t thread = loan->tracee.thread;
	struct machine_way way;

	loan->is_saved = machine_save(thread, &loan->state) == 0;
	if (loan->is_saved)
		mend_call(loan);
	if (loan->is_saved && is_on_loan(target, &loan->state))
		return end_other_loan(loan);
	if (!loan->is_saved || !moment_is_good(target, thread, &loan->state))
		return LOAN_ELSEWHERE;
	machine_make_way(&way, &loan->state, identity_inner(thread), loan->size);
	loan->way = gap_lay(target, thread, &way);
	if (loan->way || errno != ENOSPC)
		return loan->way ? LOAN_OPEN : LOAN_ELSEWHERE;
	error_set(loan->error, "pid %d: its libraries leave no room for what attaching needs: start it by nvtaskset",
	          (int)target->pid);
	return LOAN_FAILED;
}

static enum loan_answer take_over(struct loan *loan)
{
	enum loan_answer answer = lay_way(loan);

	if (answer == LOAN_OPEN && (get_memory(loan) < 0 || get_code(loan) < 0))
		answer = LOAN_FAILED;
	return answer;
}

enum loan_answer loan_open(struct loan *loan, const struct target *target, pid_t thread, size_t room, bool *stopped,
                           struct error *error)
{
	enum loan_answer answer = LOAN_ELSEWHERE;

	loan->target = target;
	loan->error = error;
	loan->is_saved = *stopped = false;
	loan->way = loan->memory = 0;
	loan->size = (ROOM_AT + room + PAGE - 1) / PAGE * PAGE;
	if (tracee_seize(&loan->tracee, thread, target->unfiltered) < 0) {
		/* If only the thread has ended, others remain. */
		if (errno != ESRCH) {
			target_explain(target->pid, errno, error);
			answer = LOAN_FAILED;
		}
		return answer;
	}
	*stopped = tracee_interrupt(&loan->tracee) == TRACEE_STOPPED;
	if (*stopped)
		answer = take_over(loan);
	if (answer != LOAN_OPEN)
		loan_close(loan);
	return answer;
}

/* The state is restored at a stop where the kernel decides whether to restart a call, so the thread continues as if it
 * had not been stopped. A thread that still runs waits for a lock; we leave it running. */
void loan_close(struct loan *loan)
{
	if (loan->is_saved && loan->memory && loan->tracee.is_stopped)
		give_memory(loan);
	bool is_stopped = loan->tracee.is_stopped;

	if (loan->way || !is_stopped)
		tracee_interrupt(&loan->tracee);
	if (loan->is_saved && is_stopped && loan->tracee.is_stopped &&
	    machine_restore(loan->tracee.thread, &loan->state) == 0 && loan->way)
		gap_clear(loan->tracee.thread, loan->way);
	tracee_release(&loan->tracee);
}

/* --- using it ------------------------------------------------------------------------------------------------------ */

int loan_write(const struct loan *loan, size_t at, const void *from, size_t length)
{
	return memory_write(&loan->target->memory, loan->room + at, from, length) ? 0 : loan_lost(loan);
}

int loan_call(struct loan *loan, long number, const uint64_t arguments[6], int64_t *result)
{
	return call_at(loan, loan->memory + MACHINE_CODE_CALLS, number, arguments, result);
}

int loan_load(struct loan *loan, size_t request, size_t stack, size_t flag, bool *is_back)
{
	static unsigned char extended[MACHINE_EXTENDED_MAX];
	const struct range code = {loan->memory, loan->memory + PAGE};
	size_t extended_size = machine_copy_extended(&loan->state, extended);
	uint64_t instruction = 0;
	int64_t result;

	if (!memory_write(&loan->target->memory, loan->memory + PAGE, extended, extended_size) ||
	    machine_set_loading(loan->tracee.thread, &loan->state, loan->memory, loan->room + request,
	                        loan->room + stack) < 0)
		return loan_lost(loan);
	if (expect_stop(loan, tracee_run(&loan->tracee, &loan->target->memory, loan->room + flag)) < 0)
		return -1;
	if (machine_look(loan->tracee.thread, &instruction, &result) < 0)
		return loan_lost(loan);
	*is_back = !range_has(&code, instruction);
	loan->is_saved = !*is_back;
	/* Only the end of the code would restore these. */
	return *is_back || machine_restore_extended(loan->tracee.thread, &loan->state) == 0 ? 0 : loan_lost(loan);
}
