/*
 * A thread of another process, borrowed: it makes system calls and runs code for us, and goes on afterwards as if it
 * had not.
 *
 * Nothing is written to its stack. From its first step for us on, its way back lies in a gap behind a library's code
 * (gap.h), and its first step is to get memory for us, which is where everything else is: what calls need, the code that
 * it runs, a stack. Whenever we die, it gives that up and comes back by itself.
 */
#ifndef NVTASKSET_ATTACH_LOAN_H
#define NVTASKSET_ATTACH_LOAN_H

#include "attach/machine.h"
#include "attach/target.h"
#include "attach/tracee.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct loan {
	const struct target *target;
	struct tracee tracee;
	bool is_saved;
	struct machine_state state; /* of the thread, as it was; large */
	uint64_t way;               /* back; 0 before it is there */
	uint64_t memory, size;      /* that it has got for us; 0: none */
	uint64_t room;              /* in that memory, for whatever it is borrowed for */
	struct error *error;        /* where reasons go */
};

enum loan_answer {
	LOAN_OPEN,      /* it is ours, and stopped; give it back */
	LOAN_ELSEWHERE, /* it cannot be borrowed now: another one, or later */
	LOAN_FAILED     /* none can, with the reason */
};

/* With so many bytes of room, zeroed. `stopped` says whether the thread was made to stop. */
enum loan_answer loan_open(struct loan *loan, const struct target *target, pid_t thread, size_t room, bool *stopped,
                           struct error *error);

/* Gives the thread back as it was; where it does not stop any more, it comes back by itself. */
void loan_close(struct loan *loan);

/* All of these: -1 with the reason where the thread is gone, or waits for something for long. */

/* Writes into the room. */
int loan_write(const struct loan *loan, size_t at, const void *from, size_t length);

/* Makes a system call; its errors are its result, as the kernel has them. */
int loan_call(struct loan *loan, long number, const uint64_t arguments[6], int64_t *result);

/* Runs the loading code (machine.h), with the request there in the room and a stack that ends there, until the word at
 * `flag` is not 0. Where the thread is then on its way back already, it makes no calls any more, and may have given up its
 * memory: *is_back. */
int loan_load(struct loan *loan, size_t request, size_t stack, size_t flag, bool *is_back);

/* -1 with the reason that is behind a step that failed. */
int loan_lost(const struct loan *loan);

#endif
