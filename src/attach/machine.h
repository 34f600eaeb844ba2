/*
 * What depends on the processor: a stopped thread's registers, and how to make it run something else and come back by
 * itself. x86_64.c is the one machine there is.
 *
 * The thread comes back through the system call with which threads return from signal handlers: below its stack, out
 * of the way, lies the frame that the kernel would have put there for a signal. Whatever the thread runs for us ends
 * by returning into it, so that the thread goes on where it was even when we are no longer there to see it. While we
 * are there, we put its registers back ourselves: the kernel then restarts an interrupted system call exactly, with
 * the time that it had left, which a return from a signal cannot.
 */
#ifndef NVTASKSET_ATTACH_MACHINE_H
#define NVTASKSET_ATTACH_MACHINE_H

#include "attach/image.h"
#include "attach/memory.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

/* --- a thread's state ------------------------------------------------------------------------------------------- */

#define MACHINE_EXTENDED_MAX 16384 /* with AMX's tiles, 11 008 bytes */

/* All of a thread that a function call can change: registers, and the mask of blocked signals. */
struct machine_state {
	struct user_regs_struct registers;
	uint64_t blocked;
	size_t extended_size;
	_Alignas(64) unsigned char extended[MACHINE_EXTENDED_MAX];
};

/* Of a stopped thread that is ours to trace. -1 with errno. machine_restore changes its place last: until then it
 * still comes back by itself. */
int machine_save(pid_t thread, struct machine_state *state);
int machine_restore(pid_t thread, const struct machine_state *state);

/* The system call out of which the thread was stopped, and which goes on when it is let go; -1 if none. */
long machine_interrupted_call(const struct machine_state *state);

/* Its arguments, from 0 on. */
uint64_t machine_argument(const struct machine_state *state, unsigned int number);

/* A call that the stop itself made fail, as if a signal had come (epoll_wait and others), is to be started again. Only
 * where that does no harm. */
void machine_restart_call(struct machine_state *state);

bool machine_is_native(const struct machine_state *state);
uint64_t machine_instruction(const struct machine_state *state);
uint64_t machine_stack(const struct machine_state *state);

/* --- the way back --------------------------------------------------------------------------------------------------- */

/* Two places in the C library's code. */
struct machine_places {
	uint64_t call;    /* a system call, and a return */
	uint64_t restore; /* the return from a signal handler */
};

/* False where the library has no such code. */
bool machine_find_places(struct machine_places *places, const struct memory *memory, const struct image *libc);

#define MACHINE_FRAME_MAX (MACHINE_EXTENDED_MAX + 2048)

/* Writes the way back into the thread's memory, below its stack and what it may use there. Its address, or 0 where
 * there is no room. */
uint64_t machine_put_frame(const struct machine_state *state, const struct machine_places *places,
                           const struct memory *memory);

/* Where the thread was when a signal handler began, whose frame's address lies at `frame`; 0 where that cannot be read. */
uint64_t machine_interrupted_by_signal(const struct memory *memory, uint64_t frame);

/* --- running something else ------------------------------------------------------------------------------------------ */

/* When the thread goes on, it makes this system call, and then goes back by `frame`. */
int machine_set_call(pid_t thread, const struct machine_state *state, const struct machine_places *places,
                     uint64_t frame, long number, const uint64_t arguments[6]);

#define MACHINE_TEXT 256

/* What the loading code works with, at an address in the thread's memory. */
struct machine_request {
	/* Functions of the C library. */
	uint64_t errno_location, open_library, find_symbol, last_error, close_library;
	/* Strings, and the descriptor of the library's file. */
	uint64_t path, entry, told, file;
	/* The way back: how long to wait for us, the memory to give up, and the frame. */
	uint64_t patience_s, patience_ns, memory, memory_size, call, frame;
	/* Results: not 0 when they are there; the library, or 0; why not, or 0, and its text. */
	uint64_t finished, library, refusal;
	char text[MACHINE_TEXT];
};

/* The loading code: opens the library at `path` and calls its function `entry` with `told`, which returns a refusal or
 * NULL; closes the library where it refused; restores errno. Says that it has finished, and waits for us. If nobody comes,
 * it closes `file`, gives `memory` up by the system call at `call`, and goes back by `frame`. It can stand anywhere. */
extern const unsigned char machine_code[] __attribute__((visibility("hidden")));
extern const uint64_t machine_code_size __attribute__((visibility("hidden")));

/* When the thread goes on, it runs the code at `code` with the request, on this stack. */
int machine_set_code(pid_t thread, const struct machine_state *state, uint64_t code, uint64_t request, uint64_t stack);

/* Where the stopped thread stands, and the number and result of the system call that it is in or comes from. */
int machine_look(pid_t thread, uint64_t *instruction, long *number, int64_t *result);

#endif
