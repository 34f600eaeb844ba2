/*
 * Usage: where SECONDS [busy | bursts]
 *
 * An ordinary CUDA program without a word of nvtaskset. It launches kernels all the time, asks each block on
 * which SM it runs, and prints the answer whenever it changes. "busy": its kernels take milliseconds, and follow each other;
 * "bursts": so they do for 1.6 s, and then it rests as long.
 */
#include "bench.h"
#include "gpu/kernels.h"
#include "gpu/topology/topology.h"
#include "gpu/tpcset.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* So many blocks of the largest size reach every SM, if each runs this long. */
#define BLOCKS_PER_SM 4
#define THREADS 1024
#define CYCLES 20000
#define BUSY_CYCLES 4000000

#define BURST_NS INT64_C(1600000000)

/* The topology, which says which SMs a TPC has. */
static const struct topology *find_topology(const struct bench_gpu *gpu)
{
	static struct topology_list list;
	struct pci_address pci;
	struct error error = {.reason = ""};
	const struct topology *topology = NULL;
	char text[PCI_ADDRESS_TEXT];

	bench_check(cuDeviceGetPCIBusId(text, sizeof text, gpu->device));
	if (topology_load(&list, &error) == 0 && pci_address_parse(&pci, text, &error) == 0)
		topology = topology_find(&list, pci);
	if (!topology)
		bench_fail("which SM is of which TPC is not known here");
	return topology;
}

/* One of two kernels that follow each other. */
struct kernel {
	volatile uint32_t *sms; /* of each block */
	CUdeviceptr output;
	CUevent ended;
	bool is_in_flight;
};

static void launch(struct kernel *kernel, const struct bench_gpu *gpu, CUfunction function, unsigned int blocks,
                   uint64_t cycles)
{
	void *parameters[] = {&kernel->output, &cycles};

	if (!kernel->ended) {
		kernel->sms = bench_visible(blocks, &kernel->output);
		bench_check(cuEventCreate(&kernel->ended, 0));
	}
	bench_start(gpu, &(struct bench_launch){function, blocks, 1, THREADS, 1, 0, parameters});
	bench_check(cuEventRecord(kernel->ended, gpu->stream));
	kernel->is_in_flight = true;
}

/* Waits, and returns the TPCs on which the blocks ran. */
static struct tpcset wait_for(struct kernel *kernel, unsigned int blocks, unsigned int sms_per_tpc)
{
	struct tpcset ran = {{0}};

	bench_check(cuEventSynchronize(kernel->ended));
	kernel->is_in_flight = false;
	for (unsigned int block = 0; block < blocks; block++)
		tpcset_add(&ran, kernel->sms[block] / sms_per_tpc);
	return ran;
}

/* Until the next burst, in ns; 0 within one. Bursts begin at multiples of the clock. */
static int64_t rest(void)
{
	int64_t phase = bench_now() % (2 * BURST_NS);

	return phase < BURST_NS ? 0 : 2 * BURST_NS - phase;
}

static void print_change(struct tpcset ran, struct tpcset *last, unsigned int sms_per_tpc)
{
	char text[TPCSET_TEXT];

	if (!tpcset_equal(&ran, last)) {
		printf("    my kernels run on TPCs %s (%u SMs)\n", tpcset_format_list(&ran, text),
		       tpcset_count(&ran) * sms_per_tpc);
		fflush(stdout);
	}
	*last = ran;
}

int main(int count, char **arguments)
{
	bool has_bursts = count == 3 && strcmp(arguments[2], "bursts") == 0;
	bool is_busy = has_bursts || (count == 3 && strcmp(arguments[2], "busy") == 0);
	int seconds = count == 2 || is_busy ? atoi(arguments[1]) : 0;
	struct tpcset last = {{0}};
	struct bench_gpu gpu;

	if (seconds <= 0) {
		fputs("Usage: where SECONDS [busy | bursts]\n", stderr);
		return EXIT_FAILURE;
	}
	bench_open(&gpu);
	const struct topology *topology = find_topology(&gpu);
	unsigned int blocks = topology->tpc_count * topology->sms_per_tpc * BLOCKS_PER_SM;
	CUfunction function = bench_kernel(kernels_ptx, "where");
	struct kernel kernels[2] = {{.sms = NULL}};
	const int64_t end = bench_now() + seconds * INT64_C(1000000000);

	/* A busy one launches a kernel before it waits for the one before it. */
	for (unsigned int i = 0; bench_now() < end; i++) {
		int64_t pause = has_bursts ? rest() : is_busy ? 0 : 20000000;
		struct kernel *next = &kernels[i % 2], *other = is_busy && pause == 0 ? &kernels[1 - i % 2] : next;

		launch(next, &gpu, function, blocks, is_busy ? BUSY_CYCLES : CYCLES);
		if (other->is_in_flight)
			print_change(wait_for(other, blocks, topology->sms_per_tpc), &last, topology->sms_per_tpc);
		bench_sleep(pause);
	}
	bench_wait(&gpu);
	for (unsigned int i = 0; i < 2; i++) {
		if (kernels[i].ended)
			bench_check(cuEventDestroy_v2(kernels[i].ended));
	}
	bench_close(&gpu);
	return EXIT_SUCCESS;
}
