/*
 * x86-64, Linux: see machine.h.
 *
 * Neither piece of code that a thread comes back by touches a flag before it is on its way, or a register beyond the
 * general ones: what it does not restore, it has left alone.
 */
#ifdef __x86_64__

#include "machine.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <ucontext.h>

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
bool machine_restart_call(struct machine_state *state)
{
	bool broken_off = was_broken_off(&state->registers);

	if (broken_off)
		state->registers.rax = (uint64_t)RESTART_UNLESS_HANDLED;
	return broken_off;
}

/* A thread that has the processor stop it after each instruction would be stopped in our code, too. */
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

/* --- the way back --------------------------------------------------------------------------------------------------- */

/* What the code of a way back finds in front of it. */
struct way {
	uint64_t mark, owner, memory;
	uint64_t size;    /* of the memory */
	uint64_t blocked; /* signals */
	uint64_t rax, rbx, rcx, rdx, rsi, rdi, rbp, rsp, r8, r9, r10, r11, r12, r13, r14, r15, rip;
};

/* Nothing but moves, which leave the flags alone; a system call does, too. The stack is the thread's own again before
 * its signals are let through. */
__asm__(".pushsection .rodata\n"
        ".hidden machine_way_template\n"
        ".globl machine_way_template\n"
        ".balign 8\n"
        "machine_way_template:\n"
        "	.fill 176, 1, 0\n"
        "	syscall\n" /* MACHINE_WAY_GETS */
        "	mov %rax, %rdi\n"
        "	mov machine_way_template + 24(%rip), %rsi\n"
        "	mov $11, %eax\n" /* munmap */
        "	.org machine_way_template + 193\n"
        "	syscall\n" /* MACHINE_WAY_GIVES */
        "	mov machine_way_template + 96(%rip), %rsp\n"
        "	mov $2, %edi\n" /* SIG_SETMASK */
        "	lea machine_way_template + 32(%rip), %rsi\n"
        "	mov $0, %edx\n"
        "	mov $8, %r10d\n"
        "	mov $14, %eax\n" /* rt_sigprocmask */
        "	syscall\n"
        "	mov machine_way_template + 40(%rip), %rax\n"
        "	mov machine_way_template + 48(%rip), %rbx\n"
        "	mov machine_way_template + 56(%rip), %rcx\n"
        "	mov machine_way_template + 64(%rip), %rdx\n"
        "	mov machine_way_template + 72(%rip), %rsi\n"
        "	mov machine_way_template + 80(%rip), %rdi\n"
        "	mov machine_way_template + 88(%rip), %rbp\n"
        "	mov machine_way_template + 104(%rip), %r8\n"
        "	mov machine_way_template + 112(%rip), %r9\n"
        "	mov machine_way_template + 120(%rip), %r10\n"
        "	mov machine_way_template + 128(%rip), %r11\n"
        "	mov machine_way_template + 136(%rip), %r12\n"
        "	mov machine_way_template + 144(%rip), %r13\n"
        "	mov machine_way_template + 152(%rip), %r14\n"
        "	mov machine_way_template + 160(%rip), %r15\n"
        "	jmp *machine_way_template + 168(%rip)\n"
        "	.org machine_way_template + 360\n"
        ".popsection\n");

extern const unsigned char machine_way_template[] __attribute__((visibility("hidden")));

_Static_assert(sizeof(struct machine_way) == 360, "as the code has it");
_Static_assert(sizeof(struct way) == 176 && MACHINE_WAY_GETS == 176 && MACHINE_WAY_GIVES == 193, "as the code has it");
_Static_assert(offsetof(struct way, size) == 24 && offsetof(struct way, blocked) == 32, "as the code has it");
_Static_assert(offsetof(struct way, rax) == 40 && offsetof(struct way, rsp) == 96, "as the code has it");
_Static_assert(offsetof(struct way, r8) == 104 && offsetof(struct way, rip) == 168, "as the code has it");
_Static_assert(SYS_munmap == 11 && SYS_rt_sigprocmask == 14 && SIG_SETMASK == 2, "as the code has them");

/* As the kernel itself restarts a call; one with the time that is left, unless another that was interrupted has come
 * between. */
static void step_back(struct user_regs_struct *registers)
{
	registers->rax = (int64_t)registers->rax == RESTART_WITH_REST ? SYS_restart_syscall : registers->orig_rax;
	registers->rip -= CALL_LENGTH;
}

void machine_make_way(struct machine_way *way, const struct machine_state *state, uint64_t owner, uint64_t size)
{
	struct user_regs_struct registers = state->registers;

	if (will_restart(&registers))
		step_back(&registers);
	const struct way data = {
		.mark = MACHINE_WAY_MARK, .owner = owner, .size = size, .blocked = state->blocked,
		.rax = registers.rax, .rbx = registers.rbx, .rcx = registers.rcx, .rdx = registers.rdx,
		.rsi = registers.rsi, .rdi = registers.rdi, .rbp = registers.rbp, .rsp = registers.rsp,
		.r8 = registers.r8,   .r9 = registers.r9,   .r10 = registers.r10, .r11 = registers.r11,
		.r12 = registers.r12, .r13 = registers.r13, .r14 = registers.r14, .r15 = registers.r15,
		.rip = registers.rip,
	};

	memcpy(way, machine_way_template, sizeof *way);
	memcpy(way, &data, sizeof data);
}

/* --- signal handlers ------------------------------------------------------------------------------------------------- */

/* mov $15, %rax; syscall. Debuggers know handlers' frames by these bytes, so they stay as they are. */
static const unsigned char return_from_signal[] = {0x48, 0xc7, 0xc0, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05};

#define CHUNK 65536

/* Where the bytes stand in the mapping; 0 if nowhere. */
static uint64_t find_in_mapping(const struct memory *memory, const struct mapping *mapping, const unsigned char *bytes,
                                size_t length)
{
	static unsigned char chunk[CHUNK + 16];
	uint64_t found = 0;

	for (uint64_t at = mapping->start; at < mapping->end && !found; at += CHUNK) {
		size_t rest = mapping->end - at, size = rest < sizeof chunk ? rest : sizeof chunk;
		const unsigned char *place = NULL;

		if (memory_read(memory, at, chunk, size))
			place = memmem(chunk, size, bytes, length);
		found = place ? at + (uint64_t)(place - chunk) : 0;
	}
	return found;
}

uint64_t machine_find_signal_return(const struct memory *memory, const struct image *libc)
{
	uint64_t found = 0;

	for (size_t i = 0; i < memory->count && !found; i++) {
		const struct mapping *mapping = &memory->mappings[i];

		if (mapping->is_executable && range_has(&libc->range, mapping->start))
			found = find_in_mapping(memory, mapping, return_from_signal, sizeof return_from_signal);
	}
	return found;
}

/* What the kernel writes for a handler (arch/x86/kernel/signal_64.c). */
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

/* --- running something else ------------------------------------------------------------------------------------------ */

/* No call is interrupted any more. */
static struct user_regs_struct fresh_registers(const struct machine_state *state, uint64_t instruction)
{
	struct user_regs_struct registers = state->registers;

	registers.orig_rax = UINT64_MAX;
	registers.rip = instruction;
	return registers;
}

int machine_set_call(pid_t thread, const struct machine_state *state, uint64_t instruction, long number,
                     const uint64_t arguments[6])
{
	struct user_regs_struct registers = fresh_registers(state, instruction);

	registers.rax = (uint64_t)number;
	registers.rdi = arguments[0];
	registers.rsi = arguments[1];
	registers.rdx = arguments[2];
	registers.r10 = arguments[3];
	registers.r8 = arguments[4];
	registers.r9 = arguments[5];
	return (int)ptrace(PTRACE_SETREGS, thread, NULL, &registers);
}

int machine_set_loading(pid_t thread, const struct machine_state *state, uint64_t code, uint64_t request, uint64_t stack)
{
	struct user_regs_struct registers = fresh_registers(state, code + MACHINE_CODE_LOADS);

	/* As functions expect it. */
	registers.eflags &= ~(unsigned long long)FLAG_DIRECTION;
	registers.rsp = stack & ~UINT64_C(15);
	registers.rbp = 0;
	registers.rbx = request;
	return (int)ptrace(PTRACE_SETREGS, thread, NULL, &registers);
}

void machine_end_wait(struct machine_state *state)
{
	if (machine_interrupted_call(state) == SYS_ppoll) {
		state->registers.orig_rax = UINT64_MAX;
		state->registers.rax = (uint64_t)-EINTR;
	}
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

extern const unsigned char machine_code_template[] __attribute__((visibility("hidden")));

/* What the code finds in front of it. */
struct code {
	struct machine_code_head head;
	uint64_t memory, size, leave, extended, flags;
};

/* Places in the extended registers (asm/sigcontext.h, struct _xstate): the header, whose first word says which are
 * there, and whose rest is 0. */
#define EXTENDED_HEADER 512
#define EXTENDED_HEADER_END 576

void machine_make_code(struct machine_code *code, const struct machine_state *state, uint64_t way, uint64_t memory,
                       uint64_t size, uint64_t extended)
{
	const struct code data = {
		.head = {.mark = MACHINE_CODE_MARK, .way = way},
		.memory = memory,
		.size = size,
		.leave = way + MACHINE_WAY_GIVES,
		.extended = extended,
		.flags = state->registers.eflags,
	};

	memcpy(code, machine_code_template, sizeof *code);
	memcpy(code, &data, sizeof data);
}

size_t machine_copy_extended(const struct machine_state *state, unsigned char to[MACHINE_EXTENDED_MAX])
{
	memcpy(to, state->extended, state->extended_size);
	memset(to + EXTENDED_HEADER + sizeof(uint64_t), 0, EXTENDED_HEADER_END - EXTENDED_HEADER - sizeof(uint64_t));
	return state->extended_size;
}

_Static_assert(offsetof(struct code, memory) == 16 && offsetof(struct code, size) == 24, "as the code has it");
_Static_assert(offsetof(struct code, leave) == 32 && offsetof(struct code, extended) == 40, "as the code has it");
_Static_assert(offsetof(struct code, flags) == 48 && sizeof(struct code) == 56, "as the code has it");
_Static_assert(sizeof(struct machine_code) == 464 && MACHINE_CODE_CALLS == 56 && MACHINE_CODE_LOADS == 96,
               "as the code has it");

/* The request's words, as the code below sees them. */
#define ERRNO_LOCATION 0
#define OPEN_LIBRARY 8
#define FIND_SYMBOL 16
#define LAST_ERROR 24
#define CLOSE_LIBRARY 32
#define NAME 40
#define PATH 48
#define PATH_LAST 56
#define ENTRY 64
#define TOLD 72
#define FILE_FLAGS 80
#define FILE_MIN 88
#define CONTENT 96
#define CONTENT_SIZE 104
#define PATIENCE 112
#define FINISHED 128
#define FAILED 136
#define LIBRARY 144
#define REFUSAL 152
#define TEXT 160

#define CHECK(field, offset) _Static_assert(offsetof(struct machine_request, field) == (offset), "as the code has it")
CHECK(errno_location, ERRNO_LOCATION);
CHECK(open_library, OPEN_LIBRARY);
CHECK(find_symbol, FIND_SYMBOL);
CHECK(last_error, LAST_ERROR);
CHECK(close_library, CLOSE_LIBRARY);
CHECK(name, NAME);
CHECK(path, PATH);
CHECK(path_last, PATH_LAST);
CHECK(entry, ENTRY);
CHECK(told, TOLD);
CHECK(file_flags, FILE_FLAGS);
CHECK(file_min, FILE_MIN);
CHECK(content, CONTENT);
CHECK(content_size, CONTENT_SIZE);
CHECK(patience_s, PATIENCE);
CHECK(finished, FINISHED);
CHECK(failed, FAILED);
CHECK(library, LIBRARY);
CHECK(refusal, REFUSAL);
CHECK(text, TEXT);
_Static_assert(MACHINE_TEXT == 256, "as the code has it");
_Static_assert(SYS_write == 1 && SYS_close == 3 && SYS_fcntl == 72 && SYS_ppoll == 271 && SYS_memfd_create == 319 &&
                       F_DUPFD_CLOEXEC == 1030,
               "as the code has them");

#define TEXT_OF(number) #number
#define AT(word) TEXT_OF(word) "(%rbx)"
#define AT_PLUS_RCX(word) TEXT_OF(word) "(%rbx,%rcx)"

/*
 * The request is in rbx, the library's file in r14d; once the library is copied, errno's address and value in r12 and
 * r13d. The wait is one of those calls that leave alone what the kernel remembers of an interrupted one.
 *
 * Of the extended registers, protection keys (component 9) and tiles (17, 18) are not put back: a library that is loaded
 * does not touch them, and the kernel has tiles only for who has asked for them.
 */
__asm__(".pushsection .rodata\n"
        ".hidden machine_code_template\n"
        ".globl machine_code_template\n"
        ".balign 8\n"
        "machine_code_template:\n"
        "	.fill 56, 1, 0\n"
        "	syscall\n" /* MACHINE_CODE_CALLS */
        ".Lleave:\n"
        "	mov machine_code_template + 16(%rip), %rdi\n"
        "	mov machine_code_template + 24(%rip), %rsi\n"
        "	mov $11, %eax\n" /* munmap */
        "	jmp *machine_code_template + 32(%rip)\n"
        "	.org machine_code_template + 96\n" /* MACHINE_CODE_LOADS */
        /* A file, out of the way of programs that count on low numbers. */
        "	mov " AT(NAME) ", %rdi\n"
        "	mov " AT(FILE_FLAGS) ", %rsi\n"
        "	mov $319, %eax\n" /* memfd_create */
        "	syscall\n"
        "	mov %rax, " AT(FAILED) "\n"
        "	test %rax, %rax\n"
        "	js .Lfinished\n"
        "	mov %eax, %r14d\n"
        "	mov %eax, %edi\n"
        "	mov $1030, %esi\n" /* F_DUPFD_CLOEXEC */
        "	mov " AT(FILE_MIN) ", %rdx\n"
        "	mov $72, %eax\n" /* fcntl */
        "	syscall\n"
        "	test %rax, %rax\n"
        "	js .Lhave_file\n"
        "	mov %r14d, %edi\n"
        "	mov %eax, %r14d\n"
        "	mov $3, %eax\n" /* close */
        "	syscall\n"
        ".Lhave_file:\n"
        "	mov " AT(CONTENT) ", %r15\n"
        "	mov " AT(CONTENT_SIZE) ", %rbp\n"
        ".Lwrite:\n"
        "	mov %r14d, %edi\n"
        "	mov %r15, %rsi\n"
        "	mov %rbp, %rdx\n"
        "	mov $1, %eax\n" /* write */
        "	syscall\n"
        "	mov %rax, " AT(FAILED) "\n"
        "	test %rax, %rax\n"
        "	jle .Lclose\n"
        "	add %rax, %r15\n"
        "	sub %rax, %rbp\n"
        "	jnz .Lwrite\n"
        /* From here on the stack takes the place of the content. */
        "	call *" AT(ERRNO_LOCATION) "\n"
        "	mov %rax, %r12\n"
        "	mov (%rax), %r13d\n"
        /* The file's number, before which any number of slashes are one. */
        "	movq $0, " AT(FAILED) "\n"
        "	mov " AT(PATH_LAST) ", %rsi\n"
        "	mov %r14d, %eax\n"
        "	mov $10, %ecx\n"
        ".Ldigit:\n"
        "	xor %edx, %edx\n"
        "	div %ecx\n"
        "	add $'0', %dl\n"
        "	mov %dl, (%rsi)\n"
        "	dec %rsi\n"
        "	test %eax, %eax\n"
        "	jnz .Ldigit\n"
        "	mov " AT(PATH) ", %rdi\n"
        "	mov $2, %esi\n" /* RTLD_NOW */
        "	call *" AT(OPEN_LIBRARY) "\n"
        "	mov %rax, " AT(LIBRARY) "\n"
        ".Lclose:\n"
        "	mov %r14d, %edi\n"
        "	mov $3, %eax\n" /* close */
        "	syscall\n"
        "	cmpq $0, " AT(FAILED) "\n"
        "	jne .Lfinished\n"
        "	mov " AT(LIBRARY) ", %rdi\n"
        "	test %rdi, %rdi\n"
        "	jz .Lno_library\n"
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
        "	jz .Ldone\n"
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
        "	jz .Ldone\n"
        "	call *" AT(CLOSE_LIBRARY) "\n"
        ".Ldone:\n"
        "	mov %r13d, (%r12)\n"
        ".Lfinished:\n"
        "	movq $1, " AT(FINISHED) "\n"
        "	xor %edi, %edi\n"
        "	xor %esi, %esi\n"
        "	lea " AT(PATIENCE) ", %rdx\n"
        "	xor %r10d, %r10d\n"
        "	mov $8, %r8d\n"
        "	mov $271, %eax\n" /* ppoll */
        "	syscall\n"
        "	mov machine_code_template + 40(%rip), %rdi\n"
        "	mov $0xfff9fdff, %eax\n"
        "	mov $0xffffffff, %edx\n"
        "	xrstor64 (%rdi)\n"
        "	pushq machine_code_template + 48(%rip)\n"
        "	popfq\n"
        "	jmp .Lleave\n"
        "	.org machine_code_template + 464\n"
        ".popsection\n");

#endif
