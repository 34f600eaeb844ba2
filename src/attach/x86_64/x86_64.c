/*
 * x86-64, Linux (attach/machine.h): a stopped thread's registers, and the frames of signal handlers.
 */
#ifdef __x86_64__

#include "x86_64.h"

#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <ucontext.h>

#define CODE_SEGMENT_64 0x33
#define FLAG_TRAP 0x100

/* The kernel's internal codes for calls to restart, which user space never sees (include/linux/errno.h). */
enum {
	RESTART_ALWAYS = -512,  /* ERESTARTSYS */
	RESTART_QUIETLY = -513, /* ERESTARTNOINTR */
	RESTART_UNLESS_HANDLED = -514, /* ERESTARTNOHAND */
	RESTART_WITH_REST = -516 /* ERESTART_RESTARTBLOCK: continue with the time left */
};

#define CALL_LENGTH 2 /* bytes of the syscall instruction */

/* --- saving and restoring -------------------------------------------------------------------------------------- */

static int get_extended(pid_t thread, struct machine_state *state)
{
	struct iovec part = {.iov_base = state->extended, .iov_len = sizeof state->extended};
	int result = (int)ptrace(PTRACE_GETREGSET, thread, NT_X86_XSTATE, &part);

	state->extended_size = part.iov_len;
	if (result == 0 && part.iov_len == sizeof state->extended) {
		errno = EOVERFLOW;
		result = -1;
	}
	return result;
}

int machine_restore_extended(pid_t thread, const struct machine_state *state)
{
	struct iovec part = {.iov_base = (void *)state->extended, .iov_len = state->extended_size};

	return (int)ptrace(PTRACE_SETREGSET, thread, NT_X86_XSTATE, &part);
}

int machine_save(pid_t thread, struct machine_state *state)
{
	int result = -1;

	if (ptrace(PTRACE_GETREGS, thread, NULL, &state->registers) == 0 &&
	    ptrace(PTRACE_GETSIGMASK, thread, sizeof state->blocked, &state->blocked) == 0)
		result = get_extended(thread, state);
	return result;
}

int machine_restore(pid_t thread, const struct machine_state *state)
{
	int result = -1;

	if (machine_restore_extended(thread, state) == 0 &&
	    ptrace(PTRACE_SETSIGMASK, thread, sizeof state->blocked, &state->blocked) == 0)
		result = (int)ptrace(PTRACE_SETREGS, thread, NULL, &state->registers);
	return result;
}

static bool will_restart(const struct user_regs_struct *registers)
{
	int64_t result = (int64_t)registers->rax;

	return (int64_t)registers->orig_rax >= 0 &&
	       (result == RESTART_ALWAYS || result == RESTART_QUIETLY || result == RESTART_UNLESS_HANDLED ||
	        result == RESTART_WITH_REST);
}

/* Restarts the call as the kernel does. A call with a time left continues, unless a further call was interrupted. */
void x86_64_restart_call(struct user_regs_struct *registers)
{
	if (!will_restart(registers))
		return;
	registers->rax = (int64_t)registers->rax == RESTART_WITH_REST ? SYS_restart_syscall : registers->orig_rax;
	registers->rip -= CALL_LENGTH;
}

static bool was_broken_off(const struct user_regs_struct *registers)
{
	return (int64_t)registers->orig_rax >= 0 && (int64_t)registers->rax == -EINTR;
}

long machine_interrupted_call(const struct machine_state *state)
{
	const struct user_regs_struct *registers = &state->registers;

	return will_restart(registers) || was_broken_off(registers) ? (long)registers->orig_rax : -1;
}

uint64_t machine_first_argument(const struct machine_state *state)
{
	return state->registers.rdi;
}

/* The kernel then decides as for any other call: EINTR if a signal is handled, otherwise the call is made again. */
bool machine_restart_call(struct machine_state *state)
{
	bool broken_off = was_broken_off(&state->registers);

	if (broken_off)
		state->registers.rax = (uint64_t)RESTART_UNLESS_HANDLED;
	return broken_off;
}

/* A thread with the trap flag set would be stopped after each instruction of our code, too. */
bool machine_is_native(const struct machine_state *state)
{
	return state->registers.cs == CODE_SEGMENT_64 && !(state->registers.eflags & FLAG_TRAP);
}

uint64_t machine_instruction(const struct machine_state *state)
{
	return state->registers.rip;
}

uint64_t machine_stack(const struct machine_state *state)
{
	return state->registers.rsp;
}

/* --- running something else --------------------------------------------------------------------------------------- */

struct user_regs_struct x86_64_go_on(const struct machine_state *state, uint64_t instruction)
{
	struct user_regs_struct registers = state->registers;

	registers.orig_rax = UINT64_MAX;
	registers.rip = instruction;
	return registers;
}

int machine_set_call(pid_t thread, const struct machine_state *state, uint64_t instruction, long number,
                     const uint64_t arguments[6])
{
	struct user_regs_struct registers = x86_64_go_on(state, instruction);

	registers.rax = (uint64_t)number;
	registers.rdi = arguments[0];
	registers.rsi = arguments[1];
	registers.rdx = arguments[2];
	registers.r10 = arguments[3];
	registers.r8 = arguments[4];
	registers.r9 = arguments[5];
	return (int)ptrace(PTRACE_SETREGS, thread, NULL, &registers);
}

int machine_look(pid_t thread, uint64_t *instruction, int64_t *result)
{
	struct user_regs_struct registers;
	int looked = (int)ptrace(PTRACE_GETREGS, thread, NULL, &registers);

	if (looked == 0) {
		*instruction = registers.rip;
		*result = (int64_t)registers.rax;
	}
	return looked;
}

/* --- signal handlers ---------------------------------------------------------------------------------------------- */

/* mov $15, %rax; syscall. Debuggers recognize handlers' frames by these bytes, so the C library keeps the bytes. */
static const unsigned char return_from_signal[] = {0x48, 0xc7, 0xc0, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05};

#define CHUNK 65536

/* The address in the mapping; 0: not found. */
static uint64_t find_return(const struct memory *memory, const struct mapping *mapping)
{
	static unsigned char chunk[CHUNK + 16];
	uint64_t found = 0;

	for (uint64_t at = mapping->start; at < mapping->end && !found; at += CHUNK) {
		size_t rest = mapping->end - at, size = rest < sizeof chunk ? rest : sizeof chunk;
		const unsigned char *place = NULL;

		if (memory_read(memory, at, chunk, size))
			place = memmem(chunk, size, return_from_signal, sizeof return_from_signal);
		found = place ? at + (uint64_t)(place - chunk) : 0;
	}
	return found;
}

uint64_t machine_find_signal_return(const struct memory *memory, const struct image *libc)
{
	uint64_t found = 0;

	for (size_t i = 0; i < memory->count && !found; i++) {
		const struct mapping *mapping = &memory->mappings[i];

		if (mapping->protection & PROT_EXEC && range_has(&libc->range, mapping->start))
			found = find_return(memory, mapping);
	}
	return found;
}

/* The frame that the kernel writes for a handler (arch/x86/kernel/signal_64.c). */
struct signal_frame {
	uint64_t restore;
	ucontext_t context;
};

uint64_t machine_interrupted_by_signal(const struct memory *memory, uint64_t frame)
{
	const size_t at = offsetof(struct signal_frame, context.uc_mcontext.gregs[REG_RIP]);
	uint64_t instruction;

	return memory_read(memory, frame + at, &instruction, sizeof instruction) ? instruction : 0;
}

#endif
