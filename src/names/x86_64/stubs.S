/* names.h: each name is a jump through its slot. Before names_open, the slot leads to the place behind the jump. */
#ifdef __CET__
#include <cet.h>
#else
#define _CET_ENDBR
#endif

	.macro stub name
	.globl \name
	.type \name, @function
\name:	_CET_ENDBR
	jmp *.Lslot_\name(%rip)
.Learly_\name:
	_CET_ENDBR
	push $\@
	jmp early
	.size \name, . - \name
	.endm

	.macro slot name
.Lslot_\name: .quad .Learly_\name
	.endm

#define NAME(name) stub name;
	.text
	.cfi_startproc
#include "../list.h"
	.cfi_endproc

/* Keeps the caller's arguments. No function has wider ones in vector registers. */
	.cfi_startproc
	.cfi_adjust_cfa_offset 8
early:	push %rdi
	push %rsi
	push %rdx
	push %rcx
	push %r8
	push %r9
	sub $128, %rsp
	.cfi_adjust_cfa_offset 176
	movaps %xmm0, (%rsp)
	movaps %xmm1, 16(%rsp)
	movaps %xmm2, 32(%rsp)
	movaps %xmm3, 48(%rsp)
	movaps %xmm4, 64(%rsp)
	movaps %xmm5, 80(%rsp)
	movaps %xmm6, 96(%rsp)
	movaps %xmm7, 112(%rsp)
	mov 176(%rsp), %edi
	call names_early
	mov %rax, %r11
	movaps (%rsp), %xmm0
	movaps 16(%rsp), %xmm1
	movaps 32(%rsp), %xmm2
	movaps 48(%rsp), %xmm3
	movaps 64(%rsp), %xmm4
	movaps 80(%rsp), %xmm5
	movaps 96(%rsp), %xmm6
	movaps 112(%rsp), %xmm7
	add $128, %rsp
	pop %r9
	pop %r8
	pop %rcx
	pop %rdx
	pop %rsi
	pop %rdi
	add $8, %rsp
	.cfi_adjust_cfa_offset -184
	jmp *%r11
	.cfi_endproc

#undef NAME
#define NAME(name) slot name;
	.data
	.balign 8
	.globl names_slots
	.hidden names_slots
names_slots:
#include "../list.h"

	.section .note.GNU-stack, "", @progbits
