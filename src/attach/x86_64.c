/*
 * x86-64, Linux: see machine.h.
 *
 *   the thread's stack pointer    what it uses
 *   -128                          the red zone, which it may use too
 *   below                         registers beyond the general ones, as XSAVE lays them out
 *   below                         struct frame: the address of the C library's rt_sigreturn, and what that reads
 *
 * A frame is what the kernel writes for a signal handler (arch/x86/kernel/signal_64.c, fpu/signal.c).
 */
#ifdef __x86_64__

#include "machine.h"

#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <ucontext.h>

#define RED_ZONE 128
#define CODE_SEGMENT_64 0x33
#define FLAG_TRAP 0x100
#define FLAG_DIRECTION 0x400

/* The kernel's own codes for calls to restart, which user space never sees (include/linux/errno.h). */
enum {
	RESTART_ALWAYS = -512,  /* ERESTARTSYS */
	RESTART_QUIETLY = -513, /* ERESTARTNOINTR */
	RESTART_UNLESS_HANDLED = -514, /* ERESTARTNOHAND */
	RESTART_WITH_REST = -516 /* ERESTART_RESTARTBLOCK: with the time that is left */
};

#define CALL_LENGTH 2 /* of the instruction */

/* --- a thread's state ------------------------------------------------------------------------------------------- */

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

static int set_extended(pid_t thread, const struct machine_state *state)
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

	if (set_extended(thread, state) == 0 &&
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

static bool was_broken_off(const struct user_regs_struct *registers)
{
	return (int64_t)registers->orig_rax >= 0 && (int64_t)registers->rax == -EINTR;
}

long machine_interrupted_call(const struct machine_state *state)
{
	const struct user_regs_struct *registers = &state->registers;

	return will_restart(registers) || was_broken_off(registers) ? (long)registers->orig_rax : -1;
}

uint64_t machine_argument(const struct machine_state *state, unsigned int number)
{
	const struct user_regs_struct *registers = &state->registers;
	const uint64_t arguments[] = {registers->rdi, registers->rsi, registers->rdx,
	                              registers->r10, registers->r8,  registers->r9};

	return arguments[number];
}

/* The kernel then decides as for other calls: EINTR where a signal is handled, otherwise once more. */
void machine_restart_call(struct machine_state *state)
{
	if (was_broken_off(&state->registers))
		state->registers.rax = (uint64_t)RESTART_UNLESS_HANDLED;
}

bool machine_is_native(const struct machine_state *state)
{
	return state->registers.cs == CODE_SEGMENT_64;
}

uint64_t machine_instruction(const struct machine_state *state)
{
	return state->registers.rip;
}

uint64_t machine_stack(const struct machine_state *state)
{
	return state->registers.rsp;
}

/* --- the way back --------------------------------------------------------------------------------------------------- */

static const unsigned char call_and_return[] = {0x0f, 0x05, 0xc3}; /* syscall; ret: in getpid, for one */

/* mov $15, %rax; syscall. Debuggers know handlers' frames by these bytes, so they stay as they are. */
static const unsigned char return_from_signal[] = {0x48, 0xc7, 0xc0, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05};

/* Where the bytes stand in the executable parts of the range; 0 if nowhere. */
static uint64_t find_code(const struct memory *memory, const struct range *range, const unsigned char *bytes,
                          size_t length)
{
	static unsigned char page[4096 + 16];
	uint64_t found = 0;

	for (size_t i = 0; i < memory->count && !found; i++) {
		const struct mapping *mapping = &memory->mappings[i];
		uint64_t at = range_has(range, mapping->start) && mapping->is_executable ? mapping->start : mapping->end;

		for (; at < mapping->end && !found; at += 4096) {
			size_t size = at + sizeof page <= mapping->end ? sizeof page : 4096;
			const unsigned char *place = NULL;

			if (memory_read(memory, at, page, size))
				place = memmem(page, size, bytes, length);
			found = place ? at + (uint64_t)(place - page) : 0;
		}
	}
	return found;
}

bool machine_find_places(struct machine_places *places, const struct memory *memory, const struct image *libc)
{
	places->call = find_code(memory, &libc->range, call_and_return, sizeof call_and_return);
	places->restore = find_code(memory, &libc->range, return_from_signal, sizeof return_from_signal);
	return places->call && places->restore;
}

/* The kernel reads the mask's first word alone, and of the rest nothing. */
struct frame {
	uint64_t restore;
	ucontext_t context;
};

/* asm/ucontext.h: there are extended registers; the stack segment counts, whatever it is. */
#define CONTEXT_FLAGS 7

/* Not a mode that there is: the kernel then leaves the thread's signal stack alone. */
#define STACK_AS_IT_IS 0x7fff

/* Places in the extended registers (asm/sigcontext.h, struct _xstate). */
enum {
	EXTENDED_LEGACY = 512,
	EXTENDED_PRESENT = 512, /* which components are there */
	EXTENDED_HEADER_END = 576,
	EXTENDED_KERNELS = 464 /* what is the kernel's: here the components that there can be; struct _fpx_sw_bytes */
};

#define COMPONENTS_LEGACY 3 /* x87, SSE */
#define COMPONENT_PROTECTION_KEYS 9

static uint64_t read_word(const unsigned char *from)
{
	uint64_t word;

	memcpy(&word, from, sizeof word);
	return word;
}

/* Size and offset of a component, from the processor. */
static size_t component_end(unsigned int component)
{
	uint32_t size, offset, c, d;

	__asm__("cpuid" : "=a"(size), "=b"(offset), "=c"(c), "=d"(d) : "a"(0xd), "c"(component));
	return (size_t)offset + size;
}

/* The kernel believes a frame that is as long as the components in it, never one that is longer than what it would
 * have written itself: tiles that the thread has never asked for must not be in it. */
static size_t extended_length(uint64_t present)
{
	size_t length = EXTENDED_HEADER_END;

	for (unsigned int component = 2; component < 63; component++) {
		if (present >> component & 1 && component_end(component) > length)
			length = component_end(component);
	}
	return length;
}

/* Turns what ptrace says of the extended registers into what a frame says. False where they make no sense. */
static bool make_extended(unsigned char *extended, size_t size)
{
	uint64_t possible = read_word(extended + EXTENDED_KERNELS);
	uint64_t present = read_word(extended + EXTENDED_PRESENT) | COMPONENTS_LEGACY;
	uint32_t end = FP_XSTATE_MAGIC2;

	/* The keys' values are there, whether or not the kernel says so. */
	present |= possible & UINT64_C(1) << COMPONENT_PROTECTION_KEYS;
	struct _fpx_sw_bytes mark = {.magic1 = FP_XSTATE_MAGIC1,
	                             .xstate_bv = present,
	                             .xstate_size = (uint32_t)extended_length(present)};

	mark.extended_size = mark.xstate_size + FP_XSTATE_MAGIC2_SIZE;
	if (mark.extended_size > size + FP_XSTATE_MAGIC2_SIZE)
		return false;
	memcpy(extended + EXTENDED_PRESENT, &present, sizeof present);
	memcpy(extended + EXTENDED_KERNELS, &mark, sizeof mark);
	memcpy(extended + mark.xstate_size, &end, sizeof end);
	return true;
}

/* As the kernel itself restarts a call. Without us it cannot know how much time was left: the call starts over. */
static void step_back(struct user_regs_struct *registers)
{
	registers->rax = registers->orig_rax;
	registers->rip -= CALL_LENGTH;
}

static void make_context(ucontext_t *context, const struct machine_state *state, uint64_t extended)
{
	struct user_regs_struct registers = state->registers;
	greg_t *general = context->uc_mcontext.gregs;

	if (will_restart(&registers))
		step_back(&registers);
	context->uc_flags = CONTEXT_FLAGS;
	context->uc_stack.ss_flags = STACK_AS_IT_IS;
	context->uc_mcontext.fpregs = (fpregset_t)(uintptr_t)extended;
	memcpy(&context->uc_sigmask, &state->blocked, sizeof state->blocked);
	general[REG_R8] = (greg_t)registers.r8;
	general[REG_R9] = (greg_t)registers.r9;
	general[REG_R10] = (greg_t)registers.r10;
	general[REG_R11] = (greg_t)registers.r11;
	general[REG_R12] = (greg_t)registers.r12;
	general[REG_R13] = (greg_t)registers.r13;
	general[REG_R14] = (greg_t)registers.r14;
	general[REG_R15] = (greg_t)registers.r15;
	general[REG_RDI] = (greg_t)registers.rdi;
	general[REG_RSI] = (greg_t)registers.rsi;
	general[REG_RBP] = (greg_t)registers.rbp;
	general[REG_RBX] = (greg_t)registers.rbx;
	general[REG_RDX] = (greg_t)registers.rdx;
	general[REG_RAX] = (greg_t)registers.rax;
	general[REG_RCX] = (greg_t)registers.rcx;
	general[REG_RSP] = (greg_t)registers.rsp;
	general[REG_RIP] = (greg_t)registers.rip;
	general[REG_EFL] = (greg_t)registers.eflags;
	general[REG_CSGSFS] = (greg_t)(registers.cs | registers.gs << 16 | registers.fs << 32 | registers.ss << 48);
}

uint64_t machine_put_frame(const struct machine_state *state, const struct machine_places *places,
                           const struct memory *memory)
{
	static _Alignas(64) unsigned char extended[MACHINE_EXTENDED_MAX + FP_XSTATE_MAGIC2_SIZE];
	uint64_t stack = machine_stack(state);
	size_t size = state->extended_size;
	uint64_t extended_at = (stack - RED_ZONE - size - FP_XSTATE_MAGIC2_SIZE) & ~UINT64_C(63);
	uint64_t at = (extended_at - sizeof(struct frame)) & ~UINT64_C(15);
	const struct mapping *mapping = memory_find(memory, at);
	struct frame frame;

	memcpy(extended, state->extended, size);
	memset(&frame, 0, sizeof frame);
	frame.restore = places->restore;
	make_context(&frame.context, state, extended_at);
	if (!mapping || !mapping->is_writable || stack > mapping->end || !make_extended(extended, size) ||
	    !memory_write(memory, extended_at, extended, size + FP_XSTATE_MAGIC2_SIZE) ||
	    !memory_write(memory, at, &frame, sizeof frame))
		at = 0;
	return at;
}

uint64_t machine_interrupted_by_signal(const struct memory *memory, uint64_t frame)
{
	struct frame found;

	return memory_read(memory, frame, &found, sizeof found) ?
	               (uint64_t)found.context.uc_mcontext.gregs[REG_RIP] : 0;
}

/* --- running something else ------------------------------------------------------------------------------------------ */

/* No call is interrupted any more, and flags are as functions expect them. */
static struct user_regs_struct fresh_registers(const struct machine_state *state)
{
	struct user_regs_struct registers = state->registers;

	registers.orig_rax = UINT64_MAX;
	registers.eflags &= ~(unsigned long long)(FLAG_TRAP | FLAG_DIRECTION);
	return registers;
}

int machine_set_call(pid_t thread, const struct machine_state *state, const struct machine_places *places,
                     uint64_t frame, long number, const uint64_t arguments[6])
{
	struct user_regs_struct registers = fresh_registers(state);

	registers.rip = places->call;
	registers.rsp = frame;
	registers.rax = (uint64_t)number;
	registers.rdi = arguments[0];
	registers.rsi = arguments[1];
	registers.rdx = arguments[2];
	registers.r10 = arguments[3];
	registers.r8 = arguments[4];
	registers.r9 = arguments[5];
	return (int)ptrace(PTRACE_SETREGS, thread, NULL, &registers);
}

int machine_set_code(pid_t thread, const struct machine_state *state, uint64_t code, uint64_t request, uint64_t stack)
{
	struct user_regs_struct registers = fresh_registers(state);

	registers.rip = code;
	registers.rsp = stack & ~UINT64_C(15);
	registers.rbp = 0;
	registers.rbx = request;
	return (int)ptrace(PTRACE_SETREGS, thread, NULL, &registers);
}

int machine_look(pid_t thread, uint64_t *instruction, long *number, int64_t *result)
{
	struct user_regs_struct registers;
	int looked = (int)ptrace(PTRACE_GETREGS, thread, NULL, &registers);

	if (looked == 0) {
		*instruction = registers.rip;
		*number = (long)registers.orig_rax;
		*result = (int64_t)registers.rax;
	}
	return looked;
}

/* The request's words, as the code below sees them. */
#define ERRNO_LOCATION 0
#define OPEN_LIBRARY 8
#define FIND_SYMBOL 16
#define LAST_ERROR 24
#define CLOSE_LIBRARY 32
#define PATH 40
#define ENTRY 48
#define TOLD 56
#define FILE_NUMBER 64
#define PATIENCE 72
#define MEMORY 88
#define MEMORY_SIZE 96
#define CALL 104
#define FRAME 112
#define FINISHED 120
#define LIBRARY 128
#define REFUSAL 136
#define TEXT 144

#define CHECK(field, offset) _Static_assert(offsetof(struct machine_request, field) == (offset), "as the code has it")
CHECK(errno_location, ERRNO_LOCATION);
CHECK(open_library, OPEN_LIBRARY);
CHECK(find_symbol, FIND_SYMBOL);
CHECK(last_error, LAST_ERROR);
CHECK(close_library, CLOSE_LIBRARY);
CHECK(path, PATH);
CHECK(entry, ENTRY);
CHECK(told, TOLD);
CHECK(file, FILE_NUMBER);
CHECK(patience_s, PATIENCE);
CHECK(memory, MEMORY);
CHECK(memory_size, MEMORY_SIZE);
CHECK(call, CALL);
CHECK(frame, FRAME);
CHECK(finished, FINISHED);
CHECK(library, LIBRARY);
CHECK(refusal, REFUSAL);
CHECK(text, TEXT);
_Static_assert(MACHINE_TEXT == 256, "as the code has it");
_Static_assert(SYS_close == 3 && SYS_munmap == 11 && SYS_ppoll == 271, "as the code has them");

#define TEXT_OF(number) #number
#define AT(word) TEXT_OF(word) "(%rbx)"
#define AT_PLUS_RCX(word) TEXT_OF(word) "(%rbx,%rcx)"

/* The request is in rbx; errno's address and value in r12 and r13d. The wait is one of those calls that leave alone what
 * the kernel remembers of an interrupted one. */
__asm__(".pushsection .rodata\n"
        ".hidden machine_code, machine_code_size\n"
        ".globl machine_code, machine_code_size\n"
        "machine_code:\n"
        "	call *" AT(ERRNO_LOCATION) "\n"
        "	mov %rax, %r12\n"
        "	mov (%rax), %r13d\n"
        "	mov " AT(PATH) ", %rdi\n"
        "	mov $2, %esi\n" /* RTLD_NOW */
        "	call *" AT(OPEN_LIBRARY) "\n"
        "	mov %rax, " AT(LIBRARY) "\n"
        "	test %rax, %rax\n"
        "	jz .Lno_library\n"
        "	mov %rax, %rdi\n"
        "	mov " AT(ENTRY) ", %rsi\n"
        "	call *" AT(FIND_SYMBOL) "\n"
        "	test %rax, %rax\n"
        "	jz .Lno_library\n"
        "	mov " AT(TOLD) ", %rdi\n"
        "	call *%rax\n"
        "	jmp .Lasked\n"
        ".Lno_library:\n"
        "	call *" AT(LAST_ERROR) "\n"
        ".Lasked:\n"
        "	mov %rax, " AT(REFUSAL) "\n"
        "	test %rax, %rax\n"
        "	jz .Lloaded\n"
        "	xor %ecx, %ecx\n"
        ".Lcopy:\n"
        "	movzbl (%rax,%rcx), %edx\n"
        "	mov %dl, " AT_PLUS_RCX(TEXT) "\n"
        "	inc %ecx\n"
        "	test %dl, %dl\n"
        "	jz .Lcopied\n"
        "	cmp $255, %ecx\n"
        "	jb .Lcopy\n"
        ".Lcopied:\n"
        "	mov " AT(LIBRARY) ", %rdi\n"
        "	test %rdi, %rdi\n"
        "	jz .Lloaded\n"
        "	call *" AT(CLOSE_LIBRARY) "\n"
        ".Lloaded:\n"
        "	mov %r13d, (%r12)\n"
        "	movq $1, " AT(FINISHED) "\n"
        "	xor %edi, %edi\n"
        "	xor %esi, %esi\n"
        "	lea " AT(PATIENCE) ", %rdx\n"
        "	xor %r10d, %r10d\n"
        "	mov $8, %r8d\n"
        "	mov $271, %eax\n" /* ppoll */
        "	syscall\n"
        "	mov " AT(FILE_NUMBER) ", %rdi\n"
        "	mov $3, %eax\n" /* close */
        "	syscall\n"
        "	mov " AT(FRAME) ", %rsp\n"
        "	mov " AT(MEMORY) ", %rdi\n"
        "	mov " AT(MEMORY_SIZE) ", %rsi\n"
        "	mov " AT(CALL) ", %rcx\n"
        "	mov $11, %eax\n" /* munmap */
        "	jmp *%rcx\n"
        ".Lend:\n"
        ".balign 8\n"
        "machine_code_size:	.quad .Lend - machine_code\n"
        ".popsection\n");

#endif
