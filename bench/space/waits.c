/*
 * Usage: waits STREAMS
 *
 * In each stream but the last, a kernel that waits until the last stream's has run, with a kernel behind it. Prints "ends",
 * or "hangs" where the kernels gave up after 0.4 s: the last stream's kernel then stood behind them in one of the hardware
 * queues (CUDA_DEVICE_MAX_CONNECTIONS), which streams share where there are more of them.
 */
#include "bench.h"

#include <stdio.h>

#define STREAMS_MAX 64

/* Word 0: the last stream's kernel has run; word 1: a kernel gave up. */
static const char ptx[] =
	".version 6.0\n"
	".target sm_50\n"
	".address_size 64\n"
	".visible .entry wait(.param .u64 words)\n"
	"{\n"
	"	.reg .pred %p<3>;\n"
	"	.reg .b32 %r<2>;\n"
	"	.reg .b64 %d<5>;\n"
	"	ld.param.u64 %d1, [words];\n"
	"	cvta.to.global.u64 %d1, %d1;\n"
	"	mov.u64 %d2, %globaltimer;\n"
	"WAIT:\n"
	"	ld.volatile.global.u32 %r1, [%d1];\n"
	"	setp.ne.u32 %p1, %r1, 0;\n"
	"	@%p1 bra DONE;\n"
	"	mov.u64 %d3, %globaltimer;\n"
	"	sub.u64 %d4, %d3, %d2;\n"
	"	setp.lt.u64 %p2, %d4, 400000000;\n"
	"	@%p2 bra WAIT;\n"
	"	st.volatile.global.u32 [%d1+4], 1;\n"
	"DONE:\n"
	"	ret;\n"
	"}\n"
	".visible .entry set(.param .u64 words)\n"
	"{\n"
	"	.reg .b64 %d<2>;\n"
	"	ld.param.u64 %d1, [words];\n"
	"	cvta.to.global.u64 %d1, %d1;\n"
	"	st.volatile.global.u32 [%d1], 1;\n"
	"	ret;\n"
	"}\n"
	".visible .entry nothing(.param .u64 words)\n"
	"{\n"
	"	ret;\n"
	"}\n";

static struct bench_gpu gpu;
static CUdeviceptr words;
static CUfunction wait, nothing, set;

static void start(CUstream stream, CUfunction kernel)
{
	void *arguments[] = {&words};
	const struct bench_launch launch = {kernel, 1, 1, 1, 1, 0, arguments};

	gpu.stream = stream;
	bench_start(&gpu, &launch);
}

int main(int count, char **arguments)
{
	CUstream streams[STREAMS_MAX];
	uint32_t found[2];
	unsigned int stream_count = count == 2 ? (unsigned int)bench_number(arguments[1], "STREAMS") : 0;

	if (stream_count < 2 || stream_count > STREAMS_MAX)
		bench_fail("Usage: waits STREAMS, 2 to %d", STREAMS_MAX);
	bench_open(&gpu);
	words = bench_filled(2, 1); /* nobody waits while the kernels are loaded */
	for (unsigned int i = 0; i < stream_count; i++)
		streams[i] = i ? bench_stream(&gpu) : gpu.stream;
	wait = bench_kernel(ptx, "wait");
	nothing = bench_kernel(ptx, "nothing");
	set = bench_kernel(ptx, "set");
	start(streams[0], wait);
	start(streams[0], nothing);
	start(streams[0], set);
	bench_check(cuCtxSynchronize());
	words = bench_filled(2, 0);
	for (unsigned int i = 0; i + 1 < stream_count; i++) {
		start(streams[i], wait);
		start(streams[i], nothing);
	}
	start(streams[stream_count - 1], set);
	bench_check(cuCtxSynchronize());
	bench_check(cuMemcpyDtoH_v2(found, words, sizeof found));
	puts(found[1] ? "hangs" : "ends");
	bench_close(&gpu);
	return 0;
}
