/* --hide: the driver's answers are as small as the partition at the moment of the question. cuBLAS gets the true answers. */
/*
 * gpus: h200 turing
 * runs: --hide
 * needs: tests/programs/libcublas.so.0
 */
#include "../cases.h"
#include "support/first_gpu.h"

#include <dlfcn.h>

FIXTURE(whole_again)
{
	gpu_set_partition(&gpu, gpu_all(&gpu));
}

static int told_sms(void)
{
	int count = 0;

	gpu_check(cuDeviceGetAttribute(&count, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, gpu.device));
	return count;
}

TEST(the_number_of_sms)
{
	assert_int_equal(told_sms(), gpu.topology->tpc_count * gpu.topology->sms_per_tpc);
	for (unsigned int last = 0; last < gpu.topology->tpc_count; last++) {
		gpu_set_partition(&gpu, gpu_range(0, last));
		assert_int_equal(told_sms(), (last + 1) * gpu.topology->sms_per_tpc);
	}
}

TEST(other_attributes_are_left_alone)
{
	int major = 0, bus = 0;

	gpu_set_partition(&gpu, gpu_range(0, 0));
	gpu_check(cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, gpu.device));
	gpu_check(cuDeviceGetAttribute(&bus, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, gpu.device));
	assert_each(major, gpu.topology->compute_major, bus, gpu.topology->pci.bus);
	assert_int_equal(cuDeviceGetAttribute(NULL, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, gpu.device),
	                 CUDA_ERROR_INVALID_VALUE);
}

/* A cooperative launch of as many blocks as the program computes for itself fits, and is not widened. */
TEST(what_a_program_computes_fits)
{
	uint64_t cycles = GPU_CYCLES;
	void *parameters[] = {&gpu.output, &cycles};
	int blocks = 0;

	gpu_set_partition(&gpu, gpu_range(1, 5));
	gpu_check(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, gpu.where, GPU_THREADS, 0));
	gpu_check(cuLaunchCooperativeKernel(gpu.where, (unsigned int)(blocks * told_sms()), 1, 1, GPU_THREADS, 1, 1, 0, NULL,
	                                    parameters));
	gpu_assert_ran(gpu_read_tpcs(&gpu, gpu.output, (unsigned int)(blocks * told_sms())), gpu_range(1, 5));
}

static int blocks_for(int *threads)
{
	int blocks = 0;

	gpu_check(cuOccupancyMaxPotentialBlockSize(&blocks, threads, gpu.where, NULL, 0, 0));
	return blocks;
}

TEST(the_number_of_blocks)
{
	int threads = 0, threads_inside = 0, whole = blocks_for(&threads);

	gpu_set_partition(&gpu, gpu_range(0, 2));
	assert_int_equal(blocks_for(&threads_inside), whole / gpu.topology->tpc_count * 3);
	assert_int_equal(threads_inside, threads);
}

static CUresult count_clusters(unsigned int blocks, int *clusters)
{
	CUlaunchAttribute cluster = {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, .value.clusterDim = {blocks, 1, 1}};
	CUlaunchConfig config = gpu_config(blocks, GPU_THREADS, NULL);

	config.attrs = &cluster;
	config.numAttrs = 1;
	return cuOccupancyMaxActiveClusters(clusters, gpu.where, &config);
}

static int clusters_at_once(unsigned int blocks)
{
	int clusters = -1;

	gpu_check(count_clusters(blocks, &clusters));
	return clusters;
}

TEST(clusters)
{
	const CUlaunchConfig config = gpu_config(1, GPU_THREADS, NULL);
	struct tpcset singletons = gpu_singletons(&gpu);
	int whole, untouched = 1000, largest = -1;

	gpu_need_clusters();
	whole = clusters_at_once(4);
	gpu_set_partition(&gpu, gpu_some_of_gpc(0, 4));
	assert_in_range(clusters_at_once(4), 1, whole - 1);
	gpu_set_partition(&gpu, gpu_some_of_gpc(0, 1));
	assert_int_equal(clusters_at_once(4), 0);
	gpu_check(cuOccupancyMaxPotentialClusterSize(&largest, gpu.where, &config));
	assert_in_range(largest, 1, gpu.topology->sms_per_tpc);
	/* If the driver gives no answer, we give none either. */
	assert_int_not_equal(count_clusters(64, &untouched), CUDA_SUCCESS);
	assert_int_equal(untouched, 1000);
	if (!tpcset_is_empty(&singletons)) {
		gpu_set_partition(&gpu, singletons);
		assert_int_equal(clusters_at_once(4), 0);
	}
}

TEST(cublas_gets_the_truth)
{
	int (*cublas_sm_count)(CUresult(*)(int *, int, CUdevice), CUdevice);
	void *library = dlopen(in_build("tests/programs/libcublas.so.0"), RTLD_NOW);

	assert_non_null(library);
	*(void **)&cublas_sm_count = dlsym(library, "cublas_sm_count");
	gpu_set_partition(&gpu, gpu_range(0, 0));
	assert_int_equal(cublas_sm_count(cuDeviceGetAttribute, gpu.device), gpu.topology->tpc_count * gpu.topology->sms_per_tpc);
	assert_int_equal(told_sms(), gpu.topology->sms_per_tpc);
	dlclose(library);
}

RUN_TESTS_IN(gpu_set_up, NULL, NULL, whole_again)
