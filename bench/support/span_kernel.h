/*
 * A kernel that says where and when each of its blocks ran, as PTX text. To the simulator it is only a name.
 *
 * span(struct span *output, uint64_t ns): each block stays for `ns` ns of the GPU's clock, and writes output[block].
 */
#ifndef SPAN_KERNEL_H
#define SPAN_KERNEL_H

#include <stdint.h>

struct span {
	uint64_t start, end; /* on the GPU's clock, in ns; all processes on a GPU read the same one */
	uint64_t sm;
};

static const char span_ptx[] =
	".version 6.0\n"
	".target sm_50\n"
	".address_size 64\n"
	".visible .entry span(.param .u64 output, .param .u64 ns)\n"
	"{\n"
	"	.reg .pred %p<3>;\n"
	"	.reg .b32 %r<4>;\n"
	"	.reg .b64 %d<9>;\n"
	"	ld.param.u64 %d1, [output];\n"
	"	ld.param.u64 %d2, [ns];\n"
	"	mov.u64 %d3, %globaltimer;\n"
	"BUSY:\n"
	"	mov.u64 %d4, %globaltimer;\n"
	"	sub.u64 %d5, %d4, %d3;\n"
	"	setp.lt.u64 %p1, %d5, %d2;\n"
	"	@%p1 bra BUSY;\n"
	"	mov.u32 %r1, %tid.x;\n"
	"	setp.ne.u32 %p2, %r1, 0;\n"
	"	@%p2 bra DONE;\n"
	"	mov.u32 %r2, %smid;\n"
	"	mov.u32 %r3, %ctaid.x;\n"
	"	cvt.u64.u32 %d6, %r2;\n"
	"	cvta.to.global.u64 %d7, %d1;\n"
	"	mul.wide.u32 %d8, %r3, 24;\n"
	"	add.s64 %d7, %d7, %d8;\n"
	"	st.global.u64 [%d7], %d3;\n"
	"	st.global.u64 [%d7+8], %d4;\n"
	"	st.global.u64 [%d7+16], %d6;\n"
	"DONE:\n"
	"	ret;\n"
	"}\n";

#endif
