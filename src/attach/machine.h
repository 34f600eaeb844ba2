/*
 * The part of attaching that depends on the processor. Only x86-64 exists so far: attach/x86_64/x86_64.c implements the
 * sections on a thread's state and on signal handlers, attach/x86_64/way.c and attach/x86_64/code.c the other two.
 *
 * A thread comes back by the way back: a piece of code with the thread's registers, and without need of a stack. All
 * code of the thread for us ends there: the thread continues even if we have died. While we live, we restore the
 * thread's registers.
 */
#pragma once

#include "attach/image.h"
#include "attach/memory.h"

#include <sys/types.h>
#include <sys/user.h>

/* --- a thread's state ------------------------------------------------------------------------------------------- */

#define MACHINE_EXTENDED_MAX 16384 /* with AMX's tiles, 11 008 bytes */

/* The state of a thread that a function call can change: registers and the mask of blocked signals. */
struct machine_state {
	struct user_regs_struct registers;
	uint64_t blocked;
	size_t extended_size;
	_Alignas(64) unsigned char extended[MACHINE_EXTENDED_MAX];
};

/* For a stopped thread that we trace. -1 with errno. machine_restore changes the instruction pointer last: until then
 * the thread still comes back by itself. machine_restore_extended restores all registers but the general registers; the
 * way back does not touch the extended registers. */
int machine_save(pid_t thread, struct machine_state *state);
int machine_restore(pid_t thread, const struct machine_state *state);
int machine_restore_extended(pid_t thread, const struct machine_state *state);

/* The system call interrupted by our stop, to be continued or made again; -1: no call. */
long machine_interrupted_call(const struct machine_state *state);

/* Of the interrupted call. */
uint64_t machine_first_argument(const struct machine_state *state);

/* If our stop made the call fail with EINTR (as epoll_wait), has the kernel start the call again. Only for calls where
 * a second start does no harm. False if no call failed. */
bool machine_restart_call(struct machine_state *state);

/* Whether the thread can run our code: in 64-bit mode, and not single-stepped. The instruction and the stack
 * pointer. */
bool machine_is_native(const struct machine_state *state);
uint64_t machine_instruction(const struct machine_state *state);
uint64_t machine_stack(const struct machine_state *state);

/* Makes the thread continue with a system call, by the `syscall` instruction at the address. */
int machine_set_call(pid_t thread, const struct machine_state *state, uint64_t instruction, long number,
                     const uint64_t arguments[6]);

/* The stopped thread's instruction pointer, and the result of the thread's system call. */
int machine_look(pid_t thread, uint64_t *instruction, int64_t *result);

/* --- the way back ------------------------------------------------------------------------------------------------- */

#define MACHINE_WAY_MARK UINT64_C(0xb9d1f6a35e27c84d)

/* Lies in executable memory of the process, at a multiple of MACHINE_WAY_ALIGNMENT. */
struct machine_way {
	uint64_t mark;
	uint64_t owner;  /* the thread's number in its own PID namespace */
	uint64_t memory; /* allocated by the thread for us, or 0 */
	uint64_t rest[42];
};

#define MACHINE_WAY_ALIGNMENT 16

/* Offsets in struct machine_way of two system calls where a thread can be made to start. The first allocates memory,
 * and code behind frees the memory again; the second frees the memory. After either, the thread goes back. */
#define MACHINE_WAY_GETS 176
#define MACHINE_WAY_GIVES 193

/* Makes a way back that frees `size` bytes of memory. */
void machine_make_way(struct machine_way *way, const struct machine_state *state, uint64_t owner, uint64_t size);

/* --- signal handlers ---------------------------------------------------------------------------------------------- */

/* The address in the C library's code to which signal handlers return; 0: not found. */
uint64_t machine_find_signal_return(const struct memory *memory, const struct image *libc);

/* The instruction interrupted by a signal handler, from the handler's frame at `frame`; 0 if unreadable. */
uint64_t machine_interrupted_by_signal(const struct memory *memory, uint64_t frame);

/* --- the code for threads ----------------------------------------------------------------------------------------- */

#define MACHINE_CODE_MARK UINT64_C(0x8e61c3f2d70b5a94)

/* The code at the start of a thread's memory for us. The two parts: a system call, after which the thread frees the
 * memory and goes back; and the loading code. */
struct machine_code_head {
	uint64_t mark;
	uint64_t way; /* address of the way back */
};

struct machine_code {
	struct machine_code_head head;
	uint64_t rest[56];
};

/* Offsets of the system call and of the loading code. */
#define MACHINE_CODE_CALLS 56
#define MACHINE_CODE_LOADS 96

/* `extended` is the address of the thread's extended registers (machine_copy_extended). */
void machine_make_code(struct machine_code *code, const struct machine_state *state, uint64_t way, uint64_t memory,
                       uint64_t size, uint64_t extended);

/* Copies the extended registers for the code, to an address that is a multiple of 64. Returns the length. */
size_t machine_copy_extended(const struct machine_state *state, unsigned char to[MACHINE_EXTENDED_MAX]);

#define MACHINE_TEXT 256

/* Input and results of the loading code, at an address in the thread's memory. */
struct machine_request {
	/* Functions of the C library. */
	uint64_t errno_location, open_library, find_symbol, last_error, close_library;
	/* Strings. The file's number is written into the path, with the last digit at `path_last`. */
	uint64_t name, path, path_last, entry, argument;
	/* For the library's file: memfd_create's flags, the lowest descriptor number, and the content. */
	uint64_t file_flags, file_min, content, content_size;
	uint64_t patience_s, patience_ns; /* how long the finished thread waits for us */
	/* Results. `finished` is not 0 once the results are there. `failed` is the kernel's negative error number for
	 * the file, or 0. `library` is dlopen's handle, or 0. `refusal` is 0, or not 0 with the reason in `text`. */
	uint64_t finished;
	int64_t failed;
	uint64_t library, refusal;
	char text[MACHINE_TEXT];
};

/* Changes the state of a finished thread, to end the wait for us. */
void machine_end_wait(struct machine_state *state);

/* Makes the thread continue with the loading code of the code at `code`, on the stack. The thread makes a memfd, opens
 * the library there, and calls the function `entry` with `argument`, for NULL or the reason of a refusal. After a
 * refusal the library is closed. Then the thread closes the file, restores errno, sets `finished`, and waits for us. If
 * we do not come, the thread goes back. */
int machine_set_loading(pid_t thread, const struct machine_state *state, uint64_t code, uint64_t request,
                        uint64_t stack);
