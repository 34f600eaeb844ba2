/* A kernel runs on all SMs of its partition and on no other: for every single TPC. tests/gpu/soak.c has random sets. */
/* gpus: h200 turing ada blackwell hopper-synthetic */
#include "../cases.h"
#include "support/first_gpu.h"

TEST(every_single_tpc)
{
	for (unsigned int tpc = 0; tpc < gpu.topology->tpc_count; tpc++) {
		gpu_set_partition(&gpu, gpu_range(tpc, tpc));
		gpu_assert_inside(gpu_range(tpc, tpc));
	}
}

RUN_TESTS_IN(gpu_set_up, NULL, NULL, NULL)
