/*
 * Our own kernels for measurements and tests, as PTX text: the driver compiles the text without a CUDA toolkit. The
 * simulator recognizes the kernels by name.
 */
#pragma once

/*
 * where(uint32_t *output, uint64_t cycles): each block writes the number of its SM to output[block], and stays there
 * for `cycles` cycles. nothing(): returns at once.
 */
static const char kernels_ptx[] =
	".version 6.0\n"
	".target sm_50\n"
	".address_size 64\n"
	".visible .entry where(.param .u64 output, .param .u64 cycles)\n"
	"{\n"
	"	.reg .pred %p<3>;\n"
	"	.reg .b32 %r<4>;\n"
	"	.reg .b64 %d<9>;\n"
	"	ld.param.u64 %d1, [output];\n"
	"	ld.param.u64 %d2, [cycles];\n"
	"	mov.u64 %d3, %clock64;\n"
	"BUSY:\n"
	"	mov.u64 %d4, %clock64;\n"
	"	sub.u64 %d5, %d4, %d3;\n"
	"	setp.lt.u64 %p1, %d5, %d2;\n"
	"	@%p1 bra BUSY;\n"
	"	mov.u32 %r1, %tid.x;\n"
	"	setp.ne.u32 %p2, %r1, 0;\n"
	"	@%p2 bra DONE;\n"
	"	mov.u32 %r2, %smid;\n"
	"	mov.u32 %r3, %ctaid.x;\n"
	"	cvta.to.global.u64 %d6, %d1;\n"
	"	mul.wide.u32 %d7, %r3, 4;\n"
	"	add.s64 %d8, %d6, %d7;\n"
	"	st.global.u32 [%d8], %r2;\n"
	"DONE:\n"
	"	ret;\n"
	"}\n"
	".visible .entry nothing()\n"
	"{\n"
	"	ret;\n"
	"}\n";
