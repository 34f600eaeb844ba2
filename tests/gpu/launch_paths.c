/* A kernel runs in the partition, whichever of the driver's functions launches it, and however that function was found. */
#include "../cases.h"
#include "support/first_gpu.h"

static uint64_t cycles = GPU_CYCLES;
static void *arguments[] = {&gpu.output, &cycles};

typedef CUresult launch_function(CUfunction, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int,
                                 unsigned int, unsigned int, CUstream, void **, void **);

static void check(struct tpcset set)
{
	gpu_check(cuCtxSynchronize());
	gpu_assert_ran(gpu_read_tpcs(&gpu, gpu.output, GPU_BLOCKS(&gpu)), set);
}

/* Each with another partition than the one before. */
static struct tpcset next_partition(void)
{
	static unsigned int number;
	struct tpcset set = number % 3 == 0 ? gpu_range(3, 5) : number % 3 == 1 ? gpu_range(8, 9) : gpu_all(&gpu);

	number++;
	gpu_set_partition(&gpu, set);
	gpu_check(cuMemsetD8_v2(gpu.output, 0xff, GPU_BLOCKS(&gpu) * sizeof(uint32_t)));
	gpu_check(cuCtxSynchronize());
	return set;
}

#define PARTITIONS 3

static void *find(uint64_t flags)
{
	void *function = NULL;

	gpu_check(cuGetProcAddress_v2("cuLaunchKernel", &function, 12000, flags, NULL));
	return function;
}

TEST(by_list)
{
	const struct {
		const char *name;
		launch_function *function;
		CUstream stream;
	} rows[] = {
		{"plain", cuLaunchKernel, NULL},
		{"on the legacy stream", cuLaunchKernel, CU_STREAM_LEGACY},
		{"on the thread's stream", cuLaunchKernel, CU_STREAM_PER_THREAD},
		{"per thread", cuLaunchKernel_ptsz, NULL},
		{"by address", (launch_function *)find(0), NULL},
		{"per thread, by address", (launch_function *)find(CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM), NULL},
	};

	for (size_t i = 0; i < PARTITIONS * COUNT_OF(rows); i++) {
		struct tpcset set = next_partition();

		ROW("%s", rows[i / PARTITIONS].name);
		gpu_check(rows[i / PARTITIONS].function(gpu.where, GPU_BLOCKS(&gpu), 1, 1, GPU_THREADS, 1, 1, 0,
		                                        rows[i / PARTITIONS].stream, arguments, NULL));
		check(set);
	}
}

TEST(by_configuration)
{
	const CUlaunchConfig config = gpu_config(GPU_BLOCKS(&gpu), GPU_THREADS, NULL);

	for (int i = 0; i < 2 * PARTITIONS; i++) {
		struct tpcset set = next_partition();

		ROW("%s", i < PARTITIONS ? "plain" : "per thread");
		gpu_check((i < PARTITIONS ? cuLaunchKernelEx : cuLaunchKernelEx_ptsz)(&config, gpu.where, arguments, NULL));
		check(set);
	}
}

RUN_TESTS_IN(gpu_set_up, NULL, NULL, NULL)
