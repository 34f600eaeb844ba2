/*
 * x86-64, Linux (attach/machine.h): the code that threads run for us.
 *
 * After a system call, the code changes no flag and only general registers, which the way back restores. After loading,
 * the code itself restores flags and extended registers.
 */
#ifdef __x86_64__

#include "x86_64.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

#define FLAG_DIRECTION 0x400

/* --- running the loading code ------------------------------------------------------------------------------------- */

int machine_set_loading(pid_t thread, const struct machine_state *state, uint64_t code, uint64_t request,
                        uint64_t stack)
{
	struct user_regs_struct registers = x86_64_go_on(state, code + MACHINE_CODE_LOADS);

	/* The calling convention expects this flag to be clear. */
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

/* --- the code's data ---------------------------------------------------------------------------------------------- */

extern const unsigned char machine_code_template[] __attribute__((visibility("hidden")));

/* The data at the start of the code. */
struct code {
	struct machine_code_head head;
	uint64_t memory, size, leave, extended, flags;
};

/* Offsets in the extended registers (asm/sigcontext.h, struct _xstate): the header. The first word names the present
 * components. The rest of the header is 0. */
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

/* --- the code ----------------------------------------------------------------------------------------------------- */

_Static_assert(offsetof(struct code, memory) == 16 && offsetof(struct code, size) == 24, "as the code has it");
_Static_assert(offsetof(struct code, leave) == 32 && offsetof(struct code, extended) == 40, "as the code has it");
_Static_assert(offsetof(struct code, flags) == 48 && sizeof(struct code) == 56, "as the code has it");
_Static_assert(sizeof(struct machine_code) == 464 && MACHINE_CODE_CALLS == 56 && MACHINE_CODE_LOADS == 96,
               "as the code has it");

/* Offsets in struct machine_request, for the code below. */
#define ERRNO_LOCATION 0
#define OPEN_LIBRARY 8
#define FIND_SYMBOL 16
#define LAST_ERROR 24
#define CLOSE_LIBRARY 32
#define NAME 40
#define PATH 48
#define PATH_LAST 56
#define ENTRY 64
#define ARGUMENT 72
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
CHECK(argument, ARGUMENT);
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
 * rbx holds the request and r14d the library's file. Once the library is copied, r12 and r13d hold errno's address and
 * value. The wait is ppoll, which leaves the kernel's memory of an interrupted call alone.
 *
 * Of the extended registers, protection keys (component 9) and AMX tiles (17, 18) are not restored: loading a library
 * does not change either, and the kernel allows tiles only to programs that have asked.
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
        /* Makes a file, with a high number: some programs count on low numbers. */
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
        /* From here on the stack overwrites the content. */
        "	call *" AT(ERRNO_LOCATION) "\n"
        "	mov %rax, %r12\n"
        "	mov (%rax), %r13d\n"
        /* Writes the file's number into the path; slashes before count as one. */
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
        "	mov " AT(ARGUMENT) ", %rdi\n"
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
