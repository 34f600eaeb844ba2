#include "loan.h"

#include "attach/threads.h"

#include <errno.h>
#include <sys/ptrace.h>

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

/* --- borrowing ----------------------------------------------------------------------------------------------------- */

/* Saves what it was about, and lays its way back, if this is a good moment for it. */
static enum loan_answer take_over(struct loan *loan)
{
	const struct target *target = loan->target;

	loan->is_saved = machine_save(loan->tracee.thread, &loan->state) == 0;
	if (loan->is_saved && threads_may_borrow(target, loan->tracee.thread, &loan->state))
		loan->frame = machine_put_frame(&loan->state, &target->places, &target->memory);
	return loan->frame ? LOAN_OPEN : LOAN_ELSEWHERE;
}

enum loan_answer loan_open(struct loan *loan, const struct target *target, pid_t thread, bool *stopped,
                           struct error *error)
{
	enum loan_answer answer = LOAN_ELSEWHERE;

	loan->target = target;
	loan->error = error;
	loan->is_saved = *stopped = false;
	loan->frame = 0;
	if (tracee_seize(&loan->tracee, thread, target->unfiltered) < 0) {
		/* A thread that has ended is one of many. */
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

/* Where the kernel decides about interrupted calls, everything is as it was before, and it goes on from there. One that
 * is still running waits for a lock, and is left to that. */
void loan_close(struct loan *loan)
{
	bool is_stopped = loan->tracee.is_stopped;

	if (loan->is_saved && threads_may_repeat(machine_interrupted_call(&loan->state)))
		machine_restart_call(&loan->state);
	if (loan->frame || !is_stopped)
		tracee_interrupt(&loan->tracee);
	if (loan->is_saved && is_stopped && loan->tracee.is_stopped)
		machine_restore(loan->tracee.thread, &loan->state);
	tracee_release(&loan->tracee);
}

/* --- working ------------------------------------------------------------------------------------------------------- */

/* To the next system call's begin, and to its end. */
static int step_through_call(struct loan *loan)
{
	int result = expect_stop(loan, tracee_step(&loan->tracee));

	return result == 0 ? expect_stop(loan, tracee_step(&loan->tracee)) : result;
}

/* Only now, when it has something to come back from, where its signals are let through again. */
static int hold_signals(const struct loan *loan)
{
	const uint64_t all = UINT64_MAX;

	return (int)ptrace(PTRACE_SETSIGMASK, loan->tracee.thread, sizeof all, &all);
}

int loan_call(struct loan *loan, long number, const uint64_t arguments[6], int64_t *result)
{
	pid_t thread = loan->tracee.thread;
	uint64_t instruction;
	long called;

	if (machine_set_call(thread, &loan->state, &loan->target->places, loan->frame, number, arguments) < 0 ||
	    hold_signals(loan) < 0)
		return loan_lost(loan);
	if (step_through_call(loan) < 0)
		return -1;
	return machine_look(thread, &instruction, &called, result) < 0 ? loan_lost(loan) : 0;
}

int loan_set_code(struct loan *loan, uint64_t code, uint64_t request, uint64_t stack)
{
	bool set = machine_set_code(loan->tracee.thread, &loan->state, code, request, stack) == 0 &&
	           hold_signals(loan) == 0;

	return set ? 0 : loan_lost(loan);
}

int loan_run(struct loan *loan, uint64_t flag, const struct range *code, bool *is_back)
{
	uint64_t instruction = 0;
	int64_t result;
	long called;

	if (expect_stop(loan, tracee_run(&loan->tracee, &loan->target->memory, flag)) < 0)
		return -1;
	if (machine_look(loan->tracee.thread, &instruction, &called, &result) < 0)
		return loan_lost(loan);
	*is_back = !range_has(code, instruction);
	if (*is_back)
		loan->is_saved = false;
	return 0;
}
