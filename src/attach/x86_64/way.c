/*
 * x86-64, Linux (attach/machine.h): the way back.
 *
 * The code changes no flag, and only general registers, which are restored.
 */
#ifdef __x86_64__

#include "x86_64.h"

#include <signal.h>
#include <string.h>
#include <sys/syscall.h>

/* The data at the start of a way back. */
struct way {
	uint64_t mark, owner, memory;
	uint64_t size;    /* of the memory */
	uint64_t blocked; /* the mask of blocked signals */
	uint64_t rax, rbx, rcx, rdx, rsi, rdi, rbp, rsp, r8, r9, r10, r11, r12, r13, r14, r15, rip;
};

/* Only moves and system calls, which keep the flags. The thread's own stack pointer comes back before its signals. */
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

void machine_make_way(struct machine_way *way, const struct machine_state *state, uint64_t owner, uint64_t size)
{
	struct user_regs_struct registers = state->registers;

	x86_64_restart_call(&registers);
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

#endif
