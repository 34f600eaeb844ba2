/*
 * Usage: where SECONDS [busy]
 *
 * An ordinary CUDA program that knows nothing of nvtaskset. It launches kernels all the time, asks each block on
 * which SM it runs, and prints the answer whenever it changes. "busy": its kernels take milliseconds, and follow each other.
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

/* Launches once, waits, and returns the TPCs on which the blocks ran. */
static struct tpcset run(const struct bench_gpu *gpu, const struct bench_launch *launch, CUdeviceptr output,
                         unsigned int sms_per_tpc)
{
	uint32_t sms[TPCSET_MAX * 2 * BLOCKS_PER_SM];
	struct tpcset ran = {{0}};

	bench_start(gpu, launch);
	bench_wait(gpu);
	bench_check(cuMemcpyDtoH_v2(sms, output, launch->grid_x * sizeof *sms));
	for (unsigned int block = 0; block < launch->grid_x; block++)
		tpcset_add(&ran, sms[block] / sms_per_tpc);
	return ran;
}

static void print_set(const struct tpcset *tpcs, unsigned int sms_per_tpc)
{
	char text[TPCSET_TEXT];

	printf("    my kernels run on TPCs %s (%u SMs)\n", tpcset_format_list(tpcs, text),
	       tpcset_count(tpcs) * sms_per_tpc);
	fflush(stdout);
}

int main(int count, char **arguments)
{
	bool is_busy = count == 3 && strcmp(arguments[2], "busy") == 0;
	int seconds = count == 2 || is_busy ? atoi(arguments[1]) : 0;
	struct tpcset last = {{0}};
	struct bench_gpu gpu;

	if (seconds <= 0) {
		fputs("Usage: where SECONDS [busy]\n", stderr);
		return EXIT_FAILURE;
	}
	bench_open(&gpu);
	const struct topology *topology = find_topology(&gpu);
	unsigned int blocks = topology->tpc_count * topology->sms_per_tpc * BLOCKS_PER_SM;
	CUdeviceptr output = bench_memory(blocks * sizeof(uint32_t));
	uint64_t cycles = is_busy ? BUSY_CYCLES : CYCLES;
	void *parameters[] = {&output, &cycles};
	const struct bench_launch launch = {bench_kernel(kernels_ptx, "where"), blocks, 1, THREADS, 1, 0, parameters};
	const int64_t end = bench_now() + seconds * INT64_C(1000000000);

	do {
		struct tpcset ran = run(&gpu, &launch, output, topology->sms_per_tpc);

		if (!tpcset_equal(&ran, &last))
			print_set(&ran, topology->sms_per_tpc);
		last = ran;
		bench_sleep(is_busy ? 0 : 20000000);
	} while (bench_now() < end);
	bench_close(&gpu);
	return EXIT_SUCCESS;
}
