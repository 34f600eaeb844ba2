/* Kernels that disturb other programs, as PTX text (kernels.h). */
#ifndef NVTASKSET_NEIGHBOUR_KERNELS_H
#define NVTASKSET_NEIGHBOUR_KERNELS_H

/*
 * memory(void *at, uint64_t bytes): copies `bytes` bytes from `at` to the bytes behind. compute(float *at, uint64_t
 * rounds): each thread multiplies and adds, twice in each round.
 */
static const char neighbour_ptx[] =
	".version 6.0\n.target sm_50\n.address_size 64\n"
	".visible .entry memory(.param .u64 at, .param .u64 bytes)\n"
	"{\n"
	"	.reg .pred %p<2>; .reg .b32 %r<7>; .reg .b64 %d<8>;\n"
	"	ld.param.u64 %d1, [at]; ld.param.u64 %d2, [bytes]; cvta.to.global.u64 %d5, %d1;\n"
	"	mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x; mov.u32 %r4, %nctaid.x;\n"
	"	mad.lo.u32 %r5, %r1, %r2, %r3; mul.lo.u32 %r6, %r4, %r2;\n"
	"	mul.wide.u32 %d3, %r5, 16; mul.wide.u32 %d4, %r6, 16;\n"
	"MORE:	setp.ge.u64 %p1, %d3, %d2;\n"
	"	@%p1 bra DONE;\n"
	"	add.u64 %d6, %d5, %d3; add.u64 %d7, %d6, %d2;\n"
	"	ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%d6]; st.global.v4.u32 [%d7], {%r1, %r2, %r3, %r4};\n"
	"	add.u64 %d3, %d3, %d4;\n"
	"	bra MORE;\n"
	"DONE:	ret;\n"
	"}\n"
	".visible .entry compute(.param .u64 at, .param .u64 rounds)\n"
	"{\n"
	"	.reg .pred %p<2>; .reg .f32 %f<3>; .reg .b64 %d<4>;\n"
	"	ld.param.u64 %d1, [at]; ld.param.u64 %d2, [rounds]; cvta.to.global.u64 %d3, %d1;\n"
	"	mov.f32 %f1, 0f3F800000; mov.f32 %f2, 0f3F000000;\n"
	"MORE:	fma.rn.f32 %f1, %f1, %f2, %f1; fma.rn.f32 %f2, %f2, %f1, %f2;\n"
	"	sub.u64 %d2, %d2, 1; setp.ne.u64 %p1, %d2, 0;\n"
	"	@%p1 bra MORE;\n"
	"	st.global.f32 [%d3], %f1;\n"
	"	ret;\n"
	"}\n";

#endif
