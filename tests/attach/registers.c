#include "registers.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define VECTORS 32
#define MASKS 8
#define GENERAL 14 /* all but rsp and rcx, which counts */
#define RED_ZONE 16

struct registers {
	uint64_t general[GENERAL];    /* 0 */
	uint64_t flags;               /* 112 */
	uint64_t red_zone[RED_ZONE];  /* 120 */
	uint64_t x87[2];              /* 248 */
	uint32_t control;             /* 264: MXCSR */
	uint32_t padding;
	uint64_t masks[MASKS];        /* 272 */
	uint8_t vectors[VECTORS][64]; /* 336 */
};

_Static_assert(offsetof(struct registers, flags) == 112 && offsetof(struct registers, red_zone) == 120 &&
               offsetof(struct registers, x87) == 248 && offsetof(struct registers, control) == 264 &&
               offsetof(struct registers, masks) == 272 && offsetof(struct registers, vectors) == 336, "as the code has them");

/* Each loads from `in`, counts, and stores to `out`; the second one with the registers of AVX-512. */
void hold_avx(const struct registers *in, struct registers *out, unsigned long turns);
void hold_avx512(const struct registers *in, struct registers *out, unsigned long turns);

/* `.irp` writes one instruction for each number. Counting must not touch the flags. */
#define PROLOGUE                                                                               \
	"	push %rbx\n	push %rbp\n	push %r12\n	push %r13\n	push %r14\n	push %r15\n"   \
	"	push %rsi\n"                                                                   \
	"	mov %rdx, %rcx\n"                                                              \
	"	stmxcsr -8(%rsp)\n"                                                            \
	"	mov -8(%rsp), %eax\n"                                                          \
	"	push %rax\n"                                                                   \
	"	ldmxcsr 264(%rdi)\n"                                                           \
	"	fldl 248(%rdi)\n"                                                              \
	"	fldl 256(%rdi)\n"

#define RED "0,8,16,24,32,40,48,56,64,72,80,88,96,104,112,120"

#define COUNT                                                                                  \
	"	.irp at, " RED "\n	mov 120+\\at(%rdi), %rax\n	mov %rax, -128+\\at(%rsp)\n	.endr\n" \
	"	mov 0(%rdi), %rax\n	mov 8(%rdi), %rbx\n	mov 16(%rdi), %rdx\n"          \
	"	mov 24(%rdi), %rsi\n	mov 32(%rdi), %rbp\n	mov 40(%rdi), %r8\n"           \
	"	mov 48(%rdi), %r9\n	mov 56(%rdi), %r10\n	mov 64(%rdi), %r11\n"          \
	"	mov 72(%rdi), %r12\n	mov 80(%rdi), %r13\n	mov 88(%rdi), %r14\n"          \
	"	mov 96(%rdi), %r15\n	mov 104(%rdi), %rdi\n"                                 \
	"	stc\n	std\n"                                                                 \
	"1:	lea -1(%rcx), %rcx\n	jrcxz 2f\n	jmp 1b\n"                              \
	/* rcx is free now: it takes `out`. */                                                 \
	"2:	mov 8(%rsp), %rcx\n"                                                           \
	"	mov %rax, 0(%rcx)\n	mov %rbx, 8(%rcx)\n	mov %rdx, 16(%rcx)\n"          \
	"	mov %rsi, 24(%rcx)\n	mov %rbp, 32(%rcx)\n	mov %r8, 40(%rcx)\n"           \
	"	mov %r9, 48(%rcx)\n	mov %r10, 56(%rcx)\n	mov %r11, 64(%rcx)\n"          \
	"	mov %r12, 72(%rcx)\n	mov %r13, 80(%rcx)\n	mov %r14, 88(%rcx)\n"          \
	"	mov %r15, 96(%rcx)\n	mov %rdi, 104(%rcx)\n"                                 \
	"	.irp at, " RED "\n	mov -128+\\at(%rsp), %rax\n	mov %rax, 120+\\at(%rcx)\n	.endr\n" \
	"	pushf\n	pop 112(%rcx)\n	cld\n"                                         \
	"	fstpl 256(%rcx)\n	fstpl 248(%rcx)\n"                                     \
	"	stmxcsr 264(%rcx)\n"

#define EPILOGUE                                                                               \
	"	vzeroupper\n"                                                                  \
	"	ldmxcsr (%rsp)\n"                                                              \
	"	pop %rax\n	pop %rsi\n"                                                    \
	"	pop %r15\n	pop %r14\n	pop %r13\n	pop %r12\n	pop %rbp\n	pop %rbx\n"    \
	"	ret\n"

#define FIRST_16 "0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15"
#define ALL_32 FIRST_16 ",16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31"

__asm__(".text\n"
        "hold_avx:\n" PROLOGUE
        "	.irp n, " FIRST_16 "\n	vmovdqu 336+64*\\n(%rdi), %ymm\\n\n	.endr\n" COUNT
        "	.irp n, " FIRST_16 "\n	vmovdqu %ymm\\n, 336+64*\\n(%rcx)\n	.endr\n" EPILOGUE
        "hold_avx512:\n" PROLOGUE
        "	.irp n, " ALL_32 "\n	vmovdqu64 336+64*\\n(%rdi), %zmm\\n\n	.endr\n"
        "	.irp n, 0,1,2,3,4,5,6,7\n	kmovq 272+8*\\n(%rdi), %k\\n\n	.endr\n" COUNT
        "	.irp n, " ALL_32 "\n	vmovdqu64 %zmm\\n, 336+64*\\n(%rcx)\n	.endr\n"
        "	.irp n, 0,1,2,3,4,5,6,7\n	kmovq %k\\n, 272+8*\\n(%rcx)\n	.endr\n" EPILOGUE);

#define FLAG_CARRY 1u
#define FLAG_DIRECTION 0x400u
#define CONTROL 0x1f80u       /* MXCSR at the start of a program */
#define CONTROL_TRUNCATE 0x6000u

/* Clears the registers that this processor does not have. */
static void blank(struct registers *registers, bool has_avx512)
{
	if (!has_avx512) {
		memset(registers->masks, 0, sizeof registers->masks);
		for (int i = 0; i < VECTORS; i++)
			memset(&registers->vectors[i][i < 16 ? 32 : 0], 0, i < 16 ? 32 : 64);
	}
	registers->flags &= FLAG_CARRY | FLAG_DIRECTION;
}

bool registers_hold(unsigned long turns)
{
	static __thread uint64_t state = 88172645463325252;
	static __thread struct registers in, out;
	bool has_avx512 = __builtin_cpu_supports("avx512bw");
	double numbers[2] = {3.25, -1e300};

	for (size_t i = 0; i < sizeof in; i++) {
		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		((unsigned char *)&in)[i] = (unsigned char)state;
	}
	memset(&out, 0, sizeof out);
	memcpy(in.x87, numbers, sizeof numbers);
	in.control = CONTROL | CONTROL_TRUNCATE;
	in.padding = 0;
	in.flags = FLAG_CARRY | FLAG_DIRECTION;
	blank(&in, has_avx512);
	if (has_avx512)
		hold_avx512(&in, &out, turns);
	else
		hold_avx(&in, &out, turns);
	blank(&out, has_avx512);
	return memcmp(&in, &out, sizeof in) == 0;
}
