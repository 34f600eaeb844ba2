#include "clock_pairs.h"

#include "last_kernel.h"

#define QUESTIONS 300
#define PATIENCE_NS 1000000000

/* echo(uint64_t *words, uint64_t count): waits until words[0] is 1, 2 … count, and answers each time in words[8], with its
 * time, and words[9], with the number. Ends after half a second if nobody asks. */
static const char echo_ptx[] =
	".version 6.0\n"
	".target sm_50\n"
	".address_size 64\n"
	".visible .entry echo(.param .u64 words, .param .u64 count)\n"
	"{\n"
	"	.reg .pred %p<4>;\n"
	"	.reg .b64 %d<9>;\n"
	"	ld.param.u64 %d1, [words];\n"
	"	ld.param.u64 %d2, [count];\n"
	"	cvta.to.global.u64 %d1, %d1;\n"
	"	mov.u64 %d3, %globaltimer;\n"
	"	mov.u64 %d4, 1;\n"
	"WAIT:\n"
	"	mov.u64 %d5, %globaltimer;\n"
	"	sub.u64 %d6, %d5, %d3;\n"
	"	setp.gt.u64 %p1, %d6, 500000000;\n"
	"	@%p1 bra DONE;\n"
	"	ld.volatile.global.u64 %d7, [%d1];\n"
	"	setp.lt.u64 %p2, %d7, %d4;\n"
	"	@%p2 bra WAIT;\n"
	"	mov.u64 %d5, %globaltimer;\n"
	"	st.volatile.global.v2.u64 [%d1+64], {%d5, %d4};\n"
	"	add.u64 %d4, %d4, 1;\n"
	"	setp.le.u64 %p3, %d4, %d2;\n"
	"	@%p3 bra WAIT;\n"
	"DONE:\n"
	"	ret;\n"
	"}\n";

static struct clock_pair nothing_known(void)
{
	return (struct clock_pair){.least = INT64_MIN, .most = INT64_MAX};
}

/* The GPU's clock showed these after `begin` and before `end`. */
static void learn(struct clock_pair *pair, int64_t begin, int64_t end, int64_t first, int64_t last)
{
	pair->at = end;
	if (last - end > pair->least)
		pair->least = last - end;
	if (first - begin < pair->most)
		pair->most = first - begin;
}

static struct clock_pair ask_the_hardware(const struct bench_gpu *gpu)
{
	static CUfunction echo;
	static CUdeviceptr address;
	static volatile uint64_t *words;
	uint64_t count = QUESTIONS;
	void *arguments[] = {&address, &count};
	struct clock_pair pair = nothing_known();

	if (!echo) {
		echo = bench_kernel(echo_ptx, "echo");
		words = (volatile uint64_t *)bench_visible(32, &address);
	}
	words[0] = words[8] = words[9] = 0;
	bench_start(gpu, &(const struct bench_launch){echo, 1, 1, 1, 1, 0, arguments});
	for (uint64_t i = 1; i <= QUESTIONS; i++) {
		int64_t begin = bench_now(), end = begin;

		words[0] = i;
		while (words[9] != i && end - begin < PATIENCE_NS)
			end = bench_now();
		end = bench_now();
		if (words[9] != i)
			bench_fail("the GPU does not answer");
		learn(&pair, begin, end, (int64_t)words[8], (int64_t)words[8]);
	}
	bench_wait(gpu);
	return pair;
}

/* A simulated launch waits for its kernel. */
static struct clock_pair ask_the_simulator(const struct bench_gpu *gpu)
{
	static CUfunction last;
	CUdeviceptr looks = bench_memory(2 * sizeof(uint64_t));
	uint64_t ns = 0, words[2];
	void *arguments[] = {&looks, &ns};
	struct clock_pair pair = nothing_known();

	if (!last)
		last = bench_kernel(last_ptx, "last");
	for (int i = 0; i < 30; i++) {
		int64_t begin = bench_now();

		bench_start(gpu, &(const struct bench_launch){last, 1, 1, 32, 1, 0, arguments});
		bench_wait(gpu);
		int64_t end = bench_now();

		bench_check(cuMemcpyDtoH_v2(words, looks, sizeof words));
		learn(&pair, begin, end, (int64_t)words[0], (int64_t)words[1]);
	}
	bench_check(cuMemFree_v2(looks));
	return pair;
}

struct clock_pair clock_pair_measure(const struct bench_gpu *gpu)
{
	return gpu->is_simulated ? ask_the_simulator(gpu) : ask_the_hardware(gpu);
}

static int64_t middle(const struct clock_pair *pair)
{
	return pair->least + (pair->most - pair->least) / 2;
}

int64_t clock_pair_convert(const struct clock_pair *before, const struct clock_pair *after, uint64_t gpu_ns)
{
	int64_t time = (int64_t)gpu_ns - middle(before);
	double drift = (double)(middle(after) - middle(before)) / (double)(after->at - before->at);

	return time - (int64_t)(drift * (double)(time - before->at));
}
