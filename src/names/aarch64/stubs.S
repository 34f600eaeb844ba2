/* names.h: each name is a jump through its slot. Before names_open, the slot leads to the place behind the jump. */
	.macro stub name
	.globl \name
	.type \name, %function
\name:	adrp x16, .Lslot_\name
	ldr x16, [x16, :lo12:.Lslot_\name]
	br x16
.Learly_\name:
	mov w17, #\@
	b early
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

/* Keeps the caller's arguments. */
	.cfi_startproc
early:	stp x29, x30, [sp, #-208]!
	.cfi_def_cfa_offset 208
	.cfi_offset x29, -208
	.cfi_offset x30, -200
	stp x0, x1, [sp, #16]
	stp x2, x3, [sp, #32]
	stp x4, x5, [sp, #48]
	stp x6, x7, [sp, #64]
	stp q0, q1, [sp, #80]
	stp q2, q3, [sp, #112]
	stp q4, q5, [sp, #144]
	stp q6, q7, [sp, #176]
	mov w0, w17
	bl names_early
	mov x16, x0
	ldp q6, q7, [sp, #176]
	ldp q4, q5, [sp, #144]
	ldp q2, q3, [sp, #112]
	ldp q0, q1, [sp, #80]
	ldp x6, x7, [sp, #64]
	ldp x4, x5, [sp, #48]
	ldp x2, x3, [sp, #32]
	ldp x0, x1, [sp, #16]
	ldp x29, x30, [sp], #208
	.cfi_def_cfa_offset 0
	br x16
	.cfi_endproc

#undef NAME
#define NAME(name) slot name;
	.data
	.balign 8
	.globl names_slots
	.hidden names_slots
names_slots:
#include "../list.h"

	.section .note.GNU-stack, "", %progbits
