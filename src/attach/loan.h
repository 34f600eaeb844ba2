/*
 * A thread of another process, borrowed: it makes system calls and runs code for us, and goes on afterwards as if it
 * had not.
 *
 * From its first step for us on, the way back lies on its stack (machine.h): whenever we die, it comes back by itself.
 */
#ifndef NVTASKSET_ATTACH_LOAN_H
#define NVTASKSET_ATTACH_LOAN_H

#include "attach/machine.h"
#include "attach/target.h"
#include "attach/tracee.h"
#include "error.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct loan {
	const struct target *target;
	struct tracee tracee;
	bool is_saved;
	struct machine_state state; /* of the thread, as it was; large */
	uint64_t frame;             /* its way back; 0 before it is there */
	struct error *error;        /* where reasons go */
};

enum loan_answer {
	LOAN_OPEN,      /* it is ours, and stopped; give it back */
	LOAN_ELSEWHERE, /* it cannot be borrowed now: another one, or later */
	LOAN_FAILED     /* none can, with the reason */
};

/* `stopped` says whether the thread was made to stop. */
enum loan_answer loan_open(struct loan *loan, const struct target *target, pid_t thread, bool *stopped,
                           struct error *error);

/* Gives the thread back as it was; where it does not stop any more, it comes back by itself. */
void loan_close(struct loan *loan);

/* All three: -1 with the reason where the thread is gone, or waits for something for long. */

/* Makes a system call; its errors are its result, as the kernel has them. */
int loan_call(struct loan *loan, long number, const uint64_t arguments[6], int64_t *result);

/* Prepares for code at that address; see machine_set_code. */
int loan_set_code(struct loan *loan, uint64_t code, uint64_t request, uint64_t stack);

/* Lets it run until the word at `flag` is not 0. Where it has meanwhile left the code at `code`, it is on its way back
 * already, makes no calls any more, and may have given up its memory: *is_back. */
int loan_run(struct loan *loan, uint64_t flag, const struct range *code, bool *is_back);

/* -1 with the reason that is behind a step that failed. */
int loan_lost(const struct loan *loan);

#endif
