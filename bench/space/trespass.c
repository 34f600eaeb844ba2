/*
 * Usage: trespass hold WORD
 *        trespass read ADDRESS
 *
 * hold: fills memory with the 32-bit number WORD, and keeps it; prints its address when it is made to work
 *       (support/conversation.h).
 * read: a kernel reads the 64 bits at ADDRESS, of whomever it is. Prints them, or the name of the error if the GPU
 * refuses. Under MPS such an error may end other programs too.
 *
 * All numbers are hexadecimal.
 */
#include "bench.h"
#include "client_kernels.h"
#include "conversation.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HELD_WORDS (1 << 20)

static struct bench_gpu gpu;
static CUdeviceptr held;

static void print_address(void)
{
	printf("%" PRIx64 "\n", (uint64_t)held);
}

static void hold(uint32_t word)
{
	conversation_listen();
	bench_open(&gpu);
	held = bench_filled(HELD_WORDS, word);
	conversation_hold(&(const struct conversation){.step = print_address, .is_once = true}, gpu.sm_count);
	bench_close(&gpu);
}

/* After an error, the context is of no use, and nothing is to be done at the end. */
static void read_at(uint64_t address)
{
	CUdeviceptr output;
	uint64_t found = 0;
	const char *name = "unknown";

	bench_open(&gpu);
	output = bench_filled(sizeof found / sizeof(uint32_t), 0);
	void *parameters[] = {&output, &address};
	const struct bench_launch launch = {bench_kernel(client_kernels_ptx, "peek"), 1, 1, 1, 1, 0, parameters};

	bench_start(&gpu, &launch);
	CUresult result = cuStreamSynchronize(gpu.stream);
	if (result == CUDA_SUCCESS) {
		bench_check(cuMemcpyDtoH_v2(&found, output, sizeof found));
		printf("%016" PRIx64 "\n", found);
		bench_close(&gpu);
	} else {
		cuGetErrorName(result, &name);
		puts(name);
		fflush(stdout);
		_exit(EXIT_SUCCESS);
	}
}

int main(int count, char **arguments)
{
	char *end = "?";
	uint64_t number = count == 3 ? strtoull(arguments[2], &end, 16) : 0;

	if (*end == '\0' && strcmp(arguments[1], "hold") == 0)
		hold((uint32_t)number);
	else if (*end == '\0' && strcmp(arguments[1], "read") == 0)
		read_at(number);
	else
		bench_fail("Usage: trespass hold WORD | trespass read ADDRESS");
	return EXIT_SUCCESS;
}
