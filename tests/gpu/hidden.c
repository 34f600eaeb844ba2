/* --hide: the driver's answers are as small as the partition at the moment of the question. cuBLAS gets the true answers. */
#include "../cases.h"
#include "support/first_gpu.h"

#include <dlfcn.h>

FIXTURE(whole_again)
{
	struct tpcset all = gpu_all(&gpu);

	gpu_set_partition(&gpu, &all);
}

static int told_sms(void)
{
	int count = 0;

	gpu_check(cuDeviceGetAttribute(&count, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, gpu.device));
	return count;
}

static unsigned int sms_of(const struct tpcset *set)
{
	return tpcset_count(set) * gpu.topology->sms_per_tpc;
}

TEST(the_number_of_sms)
{
	assert_int_equal(told_sms(), gpu.topology->tpc_count * gpu.topology->sms_per_tpc);
	for (unsigned int last = 0; last < gpu.topology->tpc_count; last++) {
		struct tpcset set = gpu_range(0, last);

		gpu_set_partition(&gpu, &set);
		assert_int_equal(told_sms(), sms_of(&set));
	}
}

TEST(other_attributes_are_left_alone)
{
	struct tpcset small = gpu_range(0, 0);
	int major = 0, bus = 0;

	gpu_set_partition(&gpu, &small);
	gpu_check(cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, gpu.device));
	gpu_check(cuDeviceGetAttribute(&bus, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, gpu.device));
	assert_each(major, gpu.topology->compute_major, bus, gpu.topology->pci.bus);
	assert_int_equal(cuDeviceGetAttribute(NULL, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, gpu.device),
	                 CUDA_ERROR_INVALID_VALUE);
}

/* A cooperative launch of as many blocks as the program computes for itself fits, and is not widened. */
TEST(what_a_program_computes_fits)
{
	struct tpcset set = gpu_range(1, 5);
	uint64_t cycles = GPU_CYCLES;
	void *parameters[] = {&gpu.output, &cycles};
	int blocks = 0;

	gpu_set_partition(&gpu, &set);
	gpu_check(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, gpu.where, GPU_THREADS, 0));
	gpu_check(cuLaunchCooperativeKernel(gpu.where, (unsigned int)(blocks * told_sms()), 1, 1, GPU_THREADS, 1, 1, 0, NULL,
	                                    parameters));
	gpu_assert_ran(gpu_read_tpcs(&gpu, gpu.output, (unsigned int)(blocks * told_sms())), &set);
}

static int blocks_for(int *threads)
{
	int blocks = 0;

	gpu_check(cuOccupancyMaxPotentialBlockSize(&blocks, threads, gpu.where, NULL, 0, 0));
	return blocks;
}

TEST(the_number_of_blocks)
{
	struct tpcset set = gpu_range(0, 2);
	int threads = 0, threads_inside = 0, whole = blocks_for(&threads);

	gpu_set_partition(&gpu, &set);
	assert_int_equal(blocks_for(&threads_inside), whole / gpu.topology->tpc_count * 3);
	assert_int_equal(threads_inside, threads);
}

static CUresult count_clusters(unsigned int blocks, int *clusters)
{
	CUlaunchAttribute cluster = {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, .value.clusterDim = {blocks, 1, 1}};
	const CUlaunchConfig config = {.gridDimX = blocks, .gridDimY = 1, .gridDimZ = 1, .blockDimX = GPU_THREADS,
	                               .blockDimY = 1, .blockDimZ = 1, .attrs = &cluster, .numAttrs = 1};

	return cuOccupancyMaxActiveClusters(clusters, gpu.where, &config);
}

static int clusters_at_once(unsigned int blocks)
{
	int clusters = -1;

	gpu_check(count_clusters(blocks, &clusters));
	return clusters;
}

static int largest_cluster(void)
{
	const CUlaunchConfig config = gpu_config(1, GPU_THREADS, NULL);
	int blocks = -1;

	gpu_check(cuOccupancyMaxPotentialClusterSize(&blocks, gpu.where, &config));
	return blocks;
}

TEST(clusters)
{
	struct tpcset singletons, four;
	int whole, untouched = 1000;

	gpu_need_clusters();
	whole = clusters_at_once(4);
	four = gpu_some_of_gpc(0, 4);
	gpu_set_partition(&gpu, &four);
	assert_in_range(clusters_at_once(4), 1, whole - 1);

	four = gpu_some_of_gpc(0, 1);
	gpu_set_partition(&gpu, &four);
	assert_int_equal(clusters_at_once(4), 0);
	assert_in_range(largest_cluster(), 1, gpu.topology->sms_per_tpc);
	/* If the driver gives no answer, we give none either. */
	assert_int_not_equal(count_clusters(64, &untouched), CUDA_SUCCESS);
	assert_int_equal(untouched, 1000);
	singletons = gpu_singletons(&gpu);
	if (!tpcset_is_empty(&singletons)) {
		gpu_set_partition(&gpu, &singletons);
		assert_int_equal(clusters_at_once(4), 0);
	}
}

TEST(cublas_gets_the_truth)
{
	int (*cublas_sm_count)(CUresult(*)(int *, int, CUdevice), CUdevice);
	struct tpcset small = gpu_range(0, 0);
	char path[4096];

	snprintf(path, sizeof path, "%s/tests/programs/libcublas.so.0", getenv("BUILD"));
	void *library = dlopen(path, RTLD_NOW);

	assert_non_null(library);
	*(void **)&cublas_sm_count = dlsym(library, "cublas_sm_count");
	gpu_set_partition(&gpu, &small);
	assert_int_equal(cublas_sm_count(cuDeviceGetAttribute, gpu.device), gpu.topology->tpc_count * gpu.topology->sms_per_tpc);
	assert_int_equal(told_sms(), sms_of(&small));
	dlclose(library);
}

RUN_TESTS_IN(gpu_set_up, NULL, NULL, whole_again)
