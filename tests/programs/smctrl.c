/*
 * A program for libsmctrl, as its paper and its documentation show how to use it: most TPCs are disabled by default, and streams
 * are given some of their own. Prints where kernels ran; `smctrl COUNT` launches so many into a masked stream and prints nothing.
 */
#include <libsmctrl.h>

#include "gpu.h"

#include <stdio.h>
#include <stdlib.h>

static void show(const struct gpu_under_test *gpu, const char *name, CUstream stream)
{
	struct tpcset ran = gpu_where(gpu, stream);
	char text[TPCSET_TEXT];

	printf("%s: TPCs %s\n", name, tpcset_format_list(&ran, text));
}

static void launch_many(const struct gpu_under_test *gpu, CUstream stream, long count)
{
	for (long i = 0; i < count; i++)
		gpu_check(cuLaunchKernel(gpu->nothing, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
	gpu_check(cuCtxSynchronize());
}

int main(int count, char **arguments)
{
	struct gpu_under_test gpu;
	CUstream other, urgent;
	uint64_t mask;

	gpu_initialise();
	gpu_open(&gpu, 0);
	/* By default, TPC 0 only. */
	libsmctrl_set_global_mask(~1ull);
	gpu_check(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	gpu_check(cuStreamCreate(&urgent, CU_STREAM_NON_BLOCKING));
	libsmctrl_set_stream_mask(other, ~0x1full);
	libsmctrl_make_mask(&mask, 5, 9);
	libsmctrl_set_stream_mask(urgent, mask);
	if (count == 2) {
		launch_many(&gpu, urgent, strtol(arguments[1], NULL, 10));
	} else {
		show(&gpu, "default", NULL);
		show(&gpu, "other", other);
		show(&gpu, "urgent", urgent);
		libsmctrl_set_next_mask(~0xc00ull);
		show(&gpu, "next", urgent);
		show(&gpu, "urgent", urgent);
	}
	gpu_check(cuStreamDestroy_v2(other));
	gpu_check(cuStreamDestroy_v2(urgent));
	gpu_close(&gpu);
	return EXIT_SUCCESS;
}
