#include "bench_kernels.h"

/* Two blocks of 1024 threads must fit on an SM that has room for so many threads, so kernels must not use too many
 * registers. */

#define READ_CLOCK                                                                                            \
	".visible .entry read_clock(.param .u64 output)\n"                                                    \
	"{\n"                                                                                                 \
	"	.reg .b64 %d<3>;\n"                                                                           \
	"	ld.param.u64 %d1, [output];\n"                                                                \
	"	cvta.to.global.u64 %d1, %d1;\n"                                                               \
	"	mov.u64 %d2, %globaltimer;\n"                                                                 \
	"	st.global.u64 [%d1], %d2;\n"                                                                  \
	"	ret;\n"                                                                                       \
	"}\n"

/* Element (row, k) of the tile of a lies 4 k bytes after its row, element (k, column) of the tile of b 128 k bytes
 * after its column. */
#define PRODUCT(in_a, in_b)                                                                                   \
	"	ld.shared.f32 %f2, [%r15+" #in_a "];\n"                                                       \
	"	ld.shared.f32 %f3, [%r17+" #in_b "];\n"                                                       \
	"	fma.rn.f32 %f1, %f2, %f3, %f1;\n"

#define MATMUL                                                                                                \
	".visible .entry matmul(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n)\n"                \
	".maxntid 32, 32, 1\n"                                                                                \
	".minnctapersm 2\n"                                                                                   \
	"{\n"                                                                                                 \
	"	.reg .pred %p<2>;\n"                                                                          \
	"	.reg .b32 %r<20>;\n"                                                                          \
	"	.reg .f32 %f<4>;\n"                                                                           \
	"	.reg .b64 %d<8>;\n"                                                                           \
	"	.shared .align 4 .b8 tile_a[4096];\n"                                                         \
	"	.shared .align 4 .b8 tile_b[4096];\n"                                                         \
	"	ld.param.u64 %d1, [a];\n"                                                                     \
	"	ld.param.u64 %d2, [b];\n"                                                                     \
	"	ld.param.u64 %d3, [c];\n"                                                                     \
	"	ld.param.u32 %r1, [n];\n"                                                                     \
	"	cvta.to.global.u64 %d1, %d1;\n"                                                               \
	"	cvta.to.global.u64 %d2, %d2;\n"                                                               \
	"	cvta.to.global.u64 %d3, %d3;\n"                                                               \
	"	mov.u32 %r2, %tid.x;\n"                                                                       \
	"	mov.u32 %r3, %tid.y;\n"                                                                       \
	"	mov.u32 %r4, %ctaid.x;\n"                                                                     \
	"	mov.u32 %r5, %ctaid.y;\n"                                                                     \
	/* Row and column of this thread's element of c. */                                                   \
	"	mad.lo.u32 %r6, %r5, 32, %r3;\n"                                                              \
	"	mad.lo.u32 %r7, %r4, 32, %r2;\n"                                                              \
	/* Where it starts to read a (and goes 32 to the right with each tile) and b (32 down). */            \
	"	mad.lo.u32 %r8, %r6, %r1, %r2;\n"                                                             \
	"	mul.wide.u32 %d4, %r8, 4;\n"                                                                  \
	"	add.u64 %d1, %d1, %d4;\n"                                                                     \
	"	mad.lo.u32 %r9, %r3, %r1, %r7;\n"                                                             \
	"	mul.wide.u32 %d5, %r9, 4;\n"                                                                  \
	"	add.u64 %d2, %d2, %d5;\n"                                                                     \
	"	mul.wide.u32 %d6, %r1, 128;\n"                                                                \
	"	mad.lo.u32 %r10, %r6, %r1, %r7;\n"                                                            \
	"	mul.wide.u32 %d7, %r10, 4;\n"                                                                 \
	"	add.u64 %d3, %d3, %d7;\n"                                                                     \
	/* Its row of the tile of a and column of that of b; what it puts into each. */                       \
	"	mov.u32 %r11, tile_a;\n"                                                                      \
	"	mov.u32 %r12, tile_b;\n"                                                                      \
	"	shl.b32 %r13, %r3, 7;\n"                                                                      \
	"	shl.b32 %r14, %r2, 2;\n"                                                                      \
	"	add.u32 %r15, %r11, %r13;\n"                                                                  \
	"	add.u32 %r16, %r15, %r14;\n"                                                                  \
	"	add.u32 %r17, %r12, %r14;\n"                                                                  \
	"	add.u32 %r18, %r17, %r13;\n"                                                                  \
	"	mov.f32 %f1, 0f00000000;\n"                                                                   \
	"	mov.u32 %r19, 0;\n"                                                                           \
	"TILE:\n"                                                                                             \
	"	ld.global.f32 %f2, [%d1];\n"                                                                  \
	"	ld.global.f32 %f3, [%d2];\n"                                                                  \
	"	st.shared.f32 [%r16], %f2;\n"                                                                 \
	"	st.shared.f32 [%r18], %f3;\n"                                                                 \
	"	bar.sync 0;\n"                                                                                \
	PRODUCT(0, 0) PRODUCT(4, 128) PRODUCT(8, 256) PRODUCT(12, 384)                                        \
	PRODUCT(16, 512) PRODUCT(20, 640) PRODUCT(24, 768) PRODUCT(28, 896)                                   \
	PRODUCT(32, 1024) PRODUCT(36, 1152) PRODUCT(40, 1280) PRODUCT(44, 1408)                               \
	PRODUCT(48, 1536) PRODUCT(52, 1664) PRODUCT(56, 1792) PRODUCT(60, 1920)                               \
	PRODUCT(64, 2048) PRODUCT(68, 2176) PRODUCT(72, 2304) PRODUCT(76, 2432)                               \
	PRODUCT(80, 2560) PRODUCT(84, 2688) PRODUCT(88, 2816) PRODUCT(92, 2944)                               \
	PRODUCT(96, 3072) PRODUCT(100, 3200) PRODUCT(104, 3328) PRODUCT(108, 3456)                            \
	PRODUCT(112, 3584) PRODUCT(116, 3712) PRODUCT(120, 3840) PRODUCT(124, 3968)                           \
	"	bar.sync 0;\n"                                                                                \
	"	add.u64 %d1, %d1, 128;\n"                                                                     \
	"	add.u64 %d2, %d2, %d6;\n"                                                                     \
	"	add.u32 %r19, %r19, 32;\n"                                                                    \
	"	setp.lt.u32 %p1, %r19, %r1;\n"                                                                \
	"	@%p1 bra TILE;\n"                                                                             \
	"	st.global.f32 [%d3], %f1;\n"                                                                  \
	"	ret;\n"                                                                                       \
	"}\n"

#define COPY                                                                                                  \
	".visible .entry copy(.param .u64 to, .param .u64 from, .param .u64 count)\n"                         \
	"{\n"                                                                                                 \
	"	.reg .pred %p<2>;\n"                                                                          \
	"	.reg .b32 %r<9>;\n"                                                                           \
	"	.reg .b64 %d<10>;\n"                                                                          \
	"	ld.param.u64 %d1, [to];\n"                                                                    \
	"	ld.param.u64 %d2, [from];\n"                                                                  \
	"	ld.param.u64 %d3, [count];\n"                                                                 \
	"	cvta.to.global.u64 %d1, %d1;\n"                                                               \
	"	cvta.to.global.u64 %d2, %d2;\n"                                                               \
	"	mov.u32 %r1, %ctaid.x;\n"                                                                     \
	"	mov.u32 %r2, %ntid.x;\n"                                                                      \
	"	mov.u32 %r3, %tid.x;\n"                                                                       \
	"	mov.u32 %r4, %nctaid.x;\n"                                                                    \
	"	mul.wide.u32 %d4, %r1, %r2;\n"                                                                \
	"	cvt.u64.u32 %d5, %r3;\n"                                                                      \
	"	add.u64 %d4, %d4, %d5;\n"                                                                     \
	"	mul.wide.u32 %d6, %r4, %r2;\n"                                                                \
	"	bra CHECK;\n"                                                                                 \
	"MORE:\n"                                                                                             \
	"	shl.b64 %d7, %d4, 4;\n"                                                                       \
	"	add.u64 %d8, %d2, %d7;\n"                                                                     \
	"	add.u64 %d9, %d1, %d7;\n"                                                                     \
	"	ld.global.v4.u32 {%r5, %r6, %r7, %r8}, [%d8];\n"                                              \
	"	st.global.v4.u32 [%d9], {%r5, %r6, %r7, %r8};\n"                                              \
	"	add.u64 %d4, %d4, %d6;\n"                                                                     \
	"CHECK:\n"                                                                                            \
	"	setp.lt.u64 %p1, %d4, %d3;\n"                                                                 \
	"	@%p1 bra MORE;\n"                                                                             \
	"	ret;\n"                                                                                       \
	"}\n"

#define CHAIN(register) "	fma.rn.f32 " register ", " register ", %f9, %f10;\n"

/* The threads of a block synchronize after each lap and at the end. Otherwise some of its warps would run ahead, and
 * the one that writes the stamps would wait for them. A store that never happens keeps the compiler from removing the
 * results: no caller asks for 0 rounds. */
#define LAPS                                                                                                  \
	".visible .entry laps(.param .u64 stamps, .param .u64 deadline, .param .u32 rounds,"                  \
	" .param .u32 count)\n"                                                                               \
	".maxntid 1024, 1, 1\n"                                                                               \
	".minnctapersm 2\n"                                                                                   \
	"{\n"                                                                                                 \
	"	.reg .pred %p<6>;\n"                                                                          \
	"	.reg .b32 %r<7>;\n"                                                                           \
	"	.reg .f32 %f<11>;\n"                                                                          \
	"	.reg .b64 %d<6>;\n"                                                                           \
	"	ld.param.u64 %d1, [stamps];\n"                                                                \
	"	ld.param.u64 %d2, [deadline];\n"                                                              \
	"	ld.param.u32 %r1, [rounds];\n"                                                                \
	"	ld.param.u32 %r2, [count];\n"                                                                 \
	"	cvta.to.global.u64 %d1, %d1;\n"                                                               \
	"	mov.u32 %r3, %tid.x;\n"                                                                       \
	"	mov.u32 %r4, %ctaid.x;\n"                                                                     \
	"	mul.lo.u32 %r5, %r4, %r2;\n"                                                                  \
	"	mul.wide.u32 %d3, %r5, 8;\n"                                                                  \
	"	add.u64 %d1, %d1, %d3;\n"                                                                     \
	"	cvt.rn.f32.u32 %f1, %r3;\n"                                                                   \
	"	add.f32 %f2, %f1, 0f3F800000;\n"                                                              \
	"	add.f32 %f3, %f2, 0f3F800000;\n"                                                              \
	"	add.f32 %f4, %f3, 0f3F800000;\n"                                                              \
	"	add.f32 %f5, %f4, 0f3F800000;\n"                                                              \
	"	add.f32 %f6, %f5, 0f3F800000;\n"                                                              \
	"	add.f32 %f7, %f6, 0f3F800000;\n"                                                              \
	"	add.f32 %f8, %f7, 0f3F800000;\n"                                                              \
	"	mov.f32 %f9, 0f3F000000;\n"                                                                   \
	"	mov.f32 %f10, 0f3F800000;\n"                                                                  \
	"LAP:\n"                                                                                              \
	"	mov.u64 %d4, %globaltimer;\n"                                                                 \
	"	setp.ge.u64 %p1, %d4, %d2;\n"                                                                 \
	"	bar.red.or.pred %p1, 0, %p1;\n"                                                               \
	"	@%p1 bra DONE;\n"                                                                             \
	"	mov.u32 %r6, 0;\n"                                                                            \
	"ROUND:\n"                                                                                            \
	CHAIN("%f1") CHAIN("%f2") CHAIN("%f3") CHAIN("%f4")                                                   \
	CHAIN("%f5") CHAIN("%f6") CHAIN("%f7") CHAIN("%f8")                                                   \
	"	add.u32 %r6, %r6, 1;\n"                                                                       \
	"	setp.lt.u32 %p2, %r6, %r1;\n"                                                                 \
	"	@%p2 bra ROUND;\n"                                                                            \
	"	setp.ne.u32 %p3, %r3, 0;\n"                                                                   \
	"	@%p3 bra NEXT;\n"                                                                             \
	"	mov.u64 %d5, %globaltimer;\n"                                                                 \
	"	st.global.u64 [%d1], %d5;\n"                                                                  \
	"NEXT:\n"                                                                                             \
	"	add.u64 %d1, %d1, 8;\n"                                                                       \
	"	sub.u32 %r2, %r2, 1;\n"                                                                       \
	"	setp.ne.u32 %p4, %r2, 0;\n"                                                                   \
	"	@%p4 bra LAP;\n"                                                                              \
	"DONE:\n"                                                                                             \
	"	setp.ne.u32 %p5, %r1, 0;\n"                                                                   \
	"	@%p5 bra END;\n"                                                                              \
	"	add.f32 %f1, %f1, %f2;\n"                                                                     \
	"	add.f32 %f3, %f3, %f4;\n"                                                                     \
	"	add.f32 %f5, %f5, %f6;\n"                                                                     \
	"	add.f32 %f7, %f7, %f8;\n"                                                                     \
	"	add.f32 %f1, %f1, %f3;\n"                                                                     \
	"	add.f32 %f5, %f5, %f7;\n"                                                                     \
	"	add.f32 %f1, %f1, %f5;\n"                                                                     \
	"	st.global.f32 [%d1], %f1;\n"                                                                  \
	"END:\n"                                                                                              \
	"	ret;\n"                                                                                       \
	"}\n"

const char bench_kernels_ptx[] = ".version 6.0\n"
                                 ".target sm_50\n"
                                 ".address_size 64\n" READ_CLOCK MATMUL COPY LAPS;
