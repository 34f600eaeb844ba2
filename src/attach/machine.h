/*
 * The part of attaching that depends on the processor. There is one machine so far: x86_64.c has a thread's state, and
 * x86_64_way.c, x86_64_signals.c and x86_64_code.c have the sections that follow it.
 *
 * The thread comes back by a piece of code that has its registers in it, and needs no stack: its way back. Whatever the
 * thread runs for us ends there, so that the thread goes on where it was even when we are no longer there to see it. While
 * we are there, we put its registers back ourselves.
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
 * still comes back by itself. Its way back leaves alone what machine_restore_extended restores, all registers but the
 * general ones. */
int machine_save(pid_t thread, struct machine_state *state);
int machine_restore(pid_t thread, const struct machine_state *state);
int machine_restore_extended(pid_t thread, const struct machine_state *state);

/* The system call out of which the thread was stopped, and which goes on when it is let go; -1 if none. */
long machine_interrupted_call(const struct machine_state *state);

/* Its arguments, from 0 on. */
uint64_t machine_argument(const struct machine_state *state, unsigned int number);

/* A call that the stop itself made fail, as if a signal had come (epoll_wait and others), is to be started again. Only
 * where that does no harm. False where there is none. */
bool machine_restart_call(struct machine_state *state);

/* Whether it is of a kind that can run something else for us. */
bool machine_is_native(const struct machine_state *state);
uint64_t machine_instruction(const struct machine_state *state);
uint64_t machine_stack(const struct machine_state *state);

/* When the thread goes on, it makes this system call, by the instruction at that place. */
int machine_set_call(pid_t thread, const struct machine_state *state, uint64_t instruction, long number,
                     const uint64_t arguments[6]);

/* Where the stopped thread stands, and the result of the system call that it comes from. */
int machine_look(pid_t thread, uint64_t *instruction, int64_t *result);

/* --- the way back --------------------------------------------------------------------------------------------------- */

#define MACHINE_WAY_MARK UINT64_C(0xb9d1f6a35e27c84d)

/* As it lies in code memory of the thread's, at any multiple of MACHINE_WAY_ALIGNMENT. */
struct machine_way {
	uint64_t mark;
	uint64_t owner;  /* the thread, as its own process knows it */
	uint64_t memory; /* that the thread has for us, or 0 */
	uint64_t rest[42];
};

#define MACHINE_WAY_ALIGNMENT 16

/* Two system calls in it that a thread can be made to start with. After the first one, which gets memory, it gives back
 * what it got; the second one is the one with which it gives memory back. After both it goes back. */
#define MACHINE_WAY_GETS 176
#define MACHINE_WAY_GIVES 193

/* For memory of that size. */
void machine_make_way(struct machine_way *way, const struct machine_state *state, uint64_t owner, uint64_t size);

/* --- signal handlers ------------------------------------------------------------------------------------------------- */

/* The place in the C library's code to which signal handlers return; 0 where it has none. */
uint64_t machine_find_signal_return(const struct memory *memory, const struct image *libc);

/* Where the thread was when a signal handler began, whose frame's address lies at `frame`; 0 where that cannot be read. */
uint64_t machine_interrupted_by_signal(const struct memory *memory, uint64_t frame);

/* --- the code that it runs for us -------------------------------------------------------------------------------------- */

#define MACHINE_CODE_MARK UINT64_C(0x8e61c3f2d70b5a94)

/* The code that threads run for us, at the start of the memory that they have for us: system calls, after which they give
 * up the memory and go back; and the loading code. */
struct machine_code_head {
	uint64_t mark;
	uint64_t way; /* back */
};

struct machine_code {
	struct machine_code_head head;
	uint64_t rest[56];
};

/* In it: the system call; the loading code. */
#define MACHINE_CODE_CALLS 56
#define MACHINE_CODE_LOADS 96

/* `extended` is where the thread finds its extended registers (machine_copy_extended). */
void machine_make_code(struct machine_code *code, const struct machine_state *state, uint64_t way, uint64_t memory,
                       uint64_t size, uint64_t extended);

/* What has to be there, whose address must be a multiple of 64; its length. */
size_t machine_copy_extended(const struct machine_state *state, unsigned char to[MACHINE_EXTENDED_MAX]);

#define MACHINE_TEXT 256

/* What the loading code works with, at an address in the thread's memory. */
struct machine_request {
	/* Functions of the C library. */
	uint64_t errno_location, open_library, find_symbol, last_error, close_library;
	/* Strings. The last digit of the file's number comes to `path_last`, the others before it. */
	uint64_t name, path, path_last, entry, told;
	/* The library's file: the flags of memfd_create, the smallest number it is to have, and what comes into it. */
	uint64_t file_flags, file_min, content, content_size;
	/* How long to wait for us. */
	uint64_t patience_s, patience_ns;
	/* Results: not 0 when they are there; an error of the kernel's, negative, where there is no file, or 0; the library,
	 * or 0; why not, or 0, and its text. */
	uint64_t finished;
	int64_t failed;
	uint64_t library, refusal;
	char text[MACHINE_TEXT];
};

/* A thread that has finished and waits for us does not wait any longer, once this is its state. */
void machine_end_wait(struct machine_state *state);

/* When the thread goes on, it runs the loading code of the code at `code`, on this stack: makes a file in memory, opens
 * the library in it and calls its function `entry` with `told`, which returns a refusal or NULL; closes the library where
 * it refused, and the file; restores errno. Says that it has finished, and waits for us. If nobody comes, it goes back. */
int machine_set_loading(pid_t thread, const struct machine_state *state, uint64_t code, uint64_t request, uint64_t stack);

#endif
