/*
 * Usage: where SECONDS
 *
 * An ordinary CUDA program that knows nothing of nvtaskset. It launches kernels all the time, asks each block on
 * which SM it runs, and prints the answer whenever it changes.
 */
#include "clock.h"
#include "gpu.h"

#include <stdio.h>
#include <stdlib.h>

static void print_set(const struct tpcset *tpcs, unsigned int sms_per_tpc)
{
	char text[TPCSET_TEXT];

	printf("    my kernels run on TPCs %s (%u SMs)\n", tpcset_format_list(tpcs, text),
	       tpcset_count(tpcs) * sms_per_tpc);
	fflush(stdout);
}

int main(int count, char **arguments)
{
	int seconds = count == 2 ? atoi(arguments[1]) : 0;
	struct tpcset last = {{0}};
	struct gpu_under_test gpu;

	if (seconds <= 0) {
		fputs("Usage: where SECONDS\n", stderr);
		return EXIT_FAILURE;
	}
	gpu_initialise();
	gpu_open(&gpu, 0);
	if (!gpu.topology) {
		fputs("where: which SM is of which TPC is not known here\n", stderr);
		return EXIT_FAILURE;
	}
	const double end = clock_ms() + seconds * 1000.0;

	do {
		struct tpcset ran = gpu_where(&gpu, NULL);

		if (!tpcset_equal(&ran, &last))
			print_set(&ran, gpu.topology->sms_per_tpc);
		last = ran;
		clock_pause_us(20000);
	} while (clock_ms() < end);
	gpu_close(&gpu);
	return EXIT_SUCCESS;
}
