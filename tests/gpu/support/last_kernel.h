/*
 * A kernel that knows when it ran, as PTX text, for tests and experiments. The simulator recognizes it by its name.
 *
 * last(uint64_t *looks, uint64_t ns): each block, of one warp, writes its first look at the GPU's clock and its last one,
 * so many ns later, to looks[2 * block].
 */
#ifndef TESTS_LAST_KERNEL_H
#define TESTS_LAST_KERNEL_H

static const char last_ptx[] =
	".version 6.0\n"
	".target sm_50\n"
	".address_size 64\n"
	".visible .entry last(.param .u64 looks, .param .u64 ns)\n"
	"{\n"
	"	.reg .pred %p<3>;\n"
	"	.reg .b32 %r<4>;\n"
	"	.reg .b64 %d<9>;\n"
	"	mov.u64 %d3, %globaltimer;\n"
	"	ld.param.u64 %d1, [looks];\n"
	"	ld.param.u64 %d2, [ns];\n"
	"BUSY:\n"
	"	mov.u64 %d4, %globaltimer;\n"
	"	sub.u64 %d5, %d4, %d3;\n"
	"	setp.lt.u64 %p1, %d5, %d2;\n"
	"	@%p1 bra BUSY;\n"
	"	mov.u32 %r3, %ctaid.x;\n"
	"	cvta.to.global.u64 %d6, %d1;\n"
	"	mul.wide.u32 %d7, %r3, 16;\n"
	"	add.s64 %d8, %d6, %d7;\n"
	"	st.global.u64 [%d8], %d3;\n"
	"	st.global.u64 [%d8+8], %d4;\n"
	"	ret;\n"
	"}\n";

#endif
