/*
 * libsmctrl's masks: where kernels run, inside nvtaskset and, as smctrl_alone, without it. libsmctrl.h describes the
 * masks; their numbers of TPCs are logical on every GPU.
 *
 * gpus: h200 turing ada blackwell hopper-synthetic
 * link: libsmctrl.so.0
 */
#include "../cases.h"
#include "libsmctrl.h"
#include "state/segment/segment.h"

#include "support/graph.h"

static struct tpcset all;

/* The mask that leaves just these TPCs. */
static uint128_t only(struct tpcset set)
{
	return ~((uint128_t)set.words[1] << 64 | set.words[0]);
}

static uint128_t only_range(unsigned int first, unsigned int last)
{
	return only(gpu_range(first, last));
}

static void assert_runs_in(CUstream stream, struct tpcset set)
{
	gpu_assert_runs_in(&gpu, stream, set);
}

static void assert_runs_in_range(CUstream stream, unsigned int first, unsigned int last)
{
	assert_runs_in(stream, gpu_range(first, last));
}

/* --- which mask ---------------------------------------------------------------------------------------------- */

TEST(stream)
{
	CUstream one = gpu_new_stream(), other = gpu_new_stream(), third = gpu_new_stream();

	assert_int_equal(libsmctrl_set_stream_mask_ext(one, only_range(0, 1)), 0);
	assert_int_equal(libsmctrl_set_stream_mask_ext(other, only_range(2, 5)), 0);
	assert_runs_in_range(one, 0, 1);
	assert_runs_in_range(other, 2, 5);
	assert_runs_in(third, all);
	assert_runs_in(NULL, all);
	assert_int_equal(libsmctrl_set_stream_mask_ext(one, only_range(3, 3)), 0);
	assert_runs_in_range(one, 3, 3);
	assert_runs_in_range(other, 2, 5);
	assert_int_equal(libsmctrl_set_stream_mask(one, 0), 0);
	assert_runs_in(one, all);
	assert_runs_in_range(other, 2, 5);
	gpu_check(cuStreamDestroy_v2(one));
	gpu_check(cuStreamDestroy_v2(other));
	gpu_check(cuStreamDestroy_v2(third));
}

/* A mask for the next launch waits for a launch that succeeds. */
TEST(next_after_refusal)
{
	CUlaunchConfig nothing = {.blockDimX = 1, .blockDimY = 1, .blockDimZ = 1};

	assert_int_equal(libsmctrl_set_next_mask_ext(only_range(2, 2)), 0);
	assert_int_not_equal(cuLaunchKernelEx(&nothing, gpu.nothing, NULL, NULL), CUDA_SUCCESS);
	assert_runs_in_range(NULL, 2, 2);
	assert_runs_in(NULL, all);
}

TEST(precedence)
{
	CUstream stream = gpu_new_stream();
	uint128_t absent = (uint128_t)1 << gpu.topology->tpc_count;

	assert_int_equal(libsmctrl_set_global_mask_ext(only_range(0, 0)), 0);
	assert_int_equal(libsmctrl_set_stream_mask_ext(stream, only_range(1, 2)), 0);
	assert_int_equal(libsmctrl_set_next_mask_ext(only_range(3, 5)), 0);
	assert_runs_in_range(stream, 3, 5);
	assert_runs_in_range(stream, 1, 2);
	assert_runs_in_range(NULL, 0, 0);
	assert_int_equal(libsmctrl_set_next_mask_ext(only_range(3, 5)), 0);
	assert_runs_in_range(NULL, 3, 5);
	assert_runs_in_range(NULL, 0, 0);
	assert_int_equal(libsmctrl_set_next_mask_ext(only_range(3, 5)), 0);
	assert_int_equal(libsmctrl_set_next_mask(0), 0);
	assert_runs_in_range(NULL, 0, 0);
	/* A mask that disables no bit counts as no mask. One that disables only TPCs that the GPU lacks is a mask. */
	assert_int_equal(libsmctrl_set_stream_mask_ext(stream, 0), 0);
	assert_runs_in_range(stream, 0, 0);
	assert_int_equal(libsmctrl_set_stream_mask_ext(stream, absent), 0);
	assert_runs_in(stream, all);
	gpu_check(cuStreamDestroy_v2(stream));
}

TEST(narrow_masks)
{
	struct tpcset set = gpu_range(1, 63);

	set = tpcset_and(&set, &all);
	assert_int_equal(libsmctrl_set_next_mask(1), 0);
	assert_runs_in(NULL, set);
	assert_int_equal(libsmctrl_set_global_mask(~UINT64_C(0x1f)), 0);
	assert_runs_in_range(NULL, 0, 4);
	assert_int_equal(libsmctrl_set_stream_mask(NULL, ~UINT64_C(0x1e0)), 0);
	assert_runs_in_range(NULL, 5, 8);
	assert_int_equal(libsmctrl_set_stream_mask(NULL, 0), 0);
}

/* --- streams that have no handle of their own ---------------------------------------------------------------- */

enum way {
	BY_LIST,
	BY_LIST_PER_THREAD,
	BY_ADDRESS,
	BY_ADDRESS_PER_THREAD,
	BY_CONFIG,
	BY_CONFIG_PER_THREAD,
	COOPERATIVELY
};

typedef __typeof__(cuLaunchKernel) launch_function;

static launch_function find_launch(uint64_t flags)
{
	void *function = NULL;

	gpu_check(cuGetProcAddress_v2("cuLaunchKernel", &function, 12000, flags, NULL));
	return (launch_function)function;
}

static void assert_runs_by(enum way way, CUstream stream, struct tpcset set)
{
	const launch_function lists[] = {cuLaunchKernel, cuLaunchKernel_ptsz, find_launch(0),
	                                 find_launch(CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM)};
	uint64_t cycles = GPU_CYCLES;
	void *parameters[] = {&gpu.output, &cycles};
	/* As many blocks as there are SMs in the smallest partition of this test. */
	unsigned int blocks = way == COOPERATIVELY ? gpu.topology->sms_per_tpc * 2 : GPU_BLOCKS(&gpu);
	const CUlaunchConfig config = gpu_config(blocks, GPU_THREADS, stream);
	CUresult result = CUDA_SUCCESS;

	if (way < BY_CONFIG)
		result = lists[way](gpu.where, blocks, 1, 1, GPU_THREADS, 1, 1, 0, stream, parameters, NULL);
	else if (way == BY_CONFIG)
		result = cuLaunchKernelEx(&config, gpu.where, parameters, NULL);
	else if (way == BY_CONFIG_PER_THREAD)
		result = cuLaunchKernelEx_ptsz(&config, gpu.where, parameters, NULL);
	else
		result = cuLaunchCooperativeKernel(gpu.where, blocks, 1, 1, GPU_THREADS, 1, 1, 0, stream, parameters);
	gpu_check(result);
	gpu_check(cuCtxSynchronize());
	gpu_assert_ran(gpu_read_tpcs(&gpu, gpu.output, blocks), set);
}

TEST(every_way_to_launch)
{
	CUstream stream = gpu_new_stream();

	assert_int_equal(libsmctrl_set_stream_mask_ext(stream, only_range(2, 3)), 0);
	for (enum way way = BY_LIST; way <= COOPERATIVELY; way++)
		assert_runs_by(way, stream, gpu_range(2, 3));
	gpu_check(cuStreamDestroy_v2(stream));
}

/* Each time in another partition than before. */
TEST(every_way_to_launch_in_a_partition)
{
	for (unsigned int i = 0; i < 3 * (COOPERATIVELY + 1); i++) {
		struct tpcset set = gpu_range(i % 3, i % 3 + 1);

		gpu_set_partition(&gpu, set);
		assert_runs_by((enum way)(i / 3), NULL, set);
	}
}

TEST(default_stream)
{
	struct tpcset legacy = gpu_range(0, 1);

	assert_int_equal(libsmctrl_set_stream_mask_ext(NULL, only(legacy)), 0);
	assert_runs_by(BY_LIST, NULL, legacy);
	assert_runs_by(BY_CONFIG, CU_STREAM_LEGACY, legacy);
	assert_runs_by(BY_CONFIG_PER_THREAD, CU_STREAM_LEGACY, legacy);
	assert_runs_by(BY_LIST_PER_THREAD, NULL, all);
	assert_runs_by(BY_LIST, CU_STREAM_PER_THREAD, all);
	assert_int_equal(libsmctrl_set_stream_mask(CU_STREAM_LEGACY, 0), 0);
	assert_runs_by(BY_LIST, NULL, all);
}

static void *run_on_own_default_stream(void *argument)
{
	CUdeviceptr output;

	gpu_check(cuCtxSetCurrent(gpu.context));
	output = gpu_new_output(&gpu);
	struct tpcset *ran = malloc(sizeof *ran);

	assert_non_null(ran);
	*ran = gpu_where_into(&gpu, CU_STREAM_PER_THREAD, output);
	gpu_check(cuMemFree_v2(output));
	return ran;
}

TEST(default_stream_per_thread)
{
	struct tpcset mine = gpu_range(1, 2);
	void *ran;

	assert_int_equal(libsmctrl_set_stream_mask_ext(CU_STREAM_PER_THREAD, only(mine)), 0);
	assert_runs_by(BY_LIST_PER_THREAD, NULL, mine);
	assert_runs_by(BY_CONFIG_PER_THREAD, NULL, mine);
	assert_runs_by(BY_CONFIG, CU_STREAM_PER_THREAD, mine);
	assert_runs_by(BY_LIST, NULL, all);
	assert_int_equal(pthread_join(thread_start(run_on_own_default_stream, NULL), &ran), 0);
	gpu_assert_ran(*(struct tpcset *)ran, all);
	free(ran);
	assert_int_equal(libsmctrl_set_stream_mask(CU_STREAM_PER_THREAD, 0), 0);
	assert_runs_by(BY_LIST_PER_THREAD, NULL, all);
}

/* A new stream may get the handle of an old one, but not its mask. */
TEST(streams_end)
{
	enum { STREAMS = 16 };
	CUstream streams[STREAMS];

	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < STREAMS; i++) {
			streams[i] = gpu_new_stream();
			assert_runs_in(streams[i], all);
			assert_int_equal(libsmctrl_set_stream_mask_ext(streams[i], only_range(1, 1)), 0);
			assert_runs_in_range(streams[i], 1, 1);
		}
		for (int i = 0; i < STREAMS; i++)
			gpu_check(cuStreamDestroy_v2(streams[i]));
	}
}

/* A context takes all streams along, unannounced. */
TEST(streams_end_with_their_context)
{
	for (int round = 0; round < 8; round++) {
		struct gpu_under_test other;
		CUstream streams[16];

		gpu_open(&other, 0);
		for (size_t i = 0; i < COUNT_OF(streams); i++) {
			streams[i] = gpu_new_stream();
			gpu_assert_runs_in(&other, streams[i], all);
			assert_int_equal(libsmctrl_set_stream_mask_ext(streams[i], only_range(1, 1)), 0);
		}
		gpu_close(&other);
	}
}

/* --- with other masks ---------------------------------------------------------------------------------------- */

TEST(inside_partition)
{
	CUstream stream = gpu_new_stream();
	uint64_t times = gpu_counted(SEGMENT_OWN_MASK);

	assert_int_equal(libsmctrl_set_stream_mask_ext(stream, only_range(0, 4)), 0);
	gpu_set_partition(&gpu, gpu_range(2, 9));
	assert_runs_in_range(stream, 2, 4);
	assert_runs_in_range(NULL, 2, 9);
	assert_int_equal(libsmctrl_set_next_mask_ext(only_range(9, 10)), 0);
	assert_runs_in_range(NULL, 9, 9);
	assert_int_equal(gpu_counted(SEGMENT_OWN_MASK), times);
	gpu_set_partition(&gpu, all);
	assert_runs_in_range(stream, 0, 4);
	gpu_check(cuStreamDestroy_v2(stream));
}

/* The partition wins: such a kernel would never run. */
TEST(outside_partition)
{
	uint64_t times = gpu_counted(SEGMENT_OWN_MASK);

	gpu_set_partition(&gpu, gpu_range(5, 9));
	assert_int_equal(libsmctrl_set_global_mask_ext(only_range(0, 4)), 0);
	assert_runs_in_range(NULL, 5, 9);
	assert_int_equal(gpu_counted(SEGMENT_OWN_MASK), times + 1);
	assert_int_equal(libsmctrl_set_global_mask(UINT64_MAX), 0);
	assert_runs_in_range(NULL, 5, 9);
	assert_int_equal(gpu_counted(SEGMENT_OWN_MASK), times + 2);
	gpu_set_partition(&gpu, all);
	assert_int_equal(libsmctrl_set_global_mask_ext(~(uint128_t)0), 0);
	assert_runs_in(NULL, all);
	assert_int_equal(gpu_counted(SEGMENT_OWN_MASK), times + 3);
}

/* A launch that needs more room than its mask has gets it inside the partition, if there is enough. */
TEST(misfit_stays_in_partition)
{
	enum { CLUSTER = 8 };
	struct tpcset partition = topology_virtual_gpc(gpu.topology, 1);
	unsigned int first = tpcset_next(&partition, 0);
	uint32_t sms[CLUSTER * 4];

	gpu_need_clusters();
	assert_true(tpcset_count(&partition) * gpu.topology->sms_per_tpc >= CLUSTER);
	gpu_set_partition(&gpu, partition);
	assert_int_equal(libsmctrl_set_global_mask_ext(only_range(first, first)), 0);
	struct segment_counters at_first = gpu_counters();
	struct tpcset ran = gpu_where_clusters(&gpu, CLUSTER, CLUSTER * 4, sms);

	assert_true(tpcset_is_subset(&ran, &partition));
	assert_true(tpcset_count(&ran) > 1);
	assert_int_equal(gpu_counted(SEGMENT_OWN_MASK), at_first.reasons[SEGMENT_OWN_MASK] + 1);
	assert_int_equal(gpu_counted(SEGMENT_WIDENED), at_first.reasons[SEGMENT_WIDENED]);
}

TEST(graphs)
{
	struct tpcset some = gpu_range(0, 2), others = gpu_range(3, 4);
	CUgraph graph = graph_make();
	CUgraphExec exec = graph_instantiate(graph);

	graph_assert_ran(exec, NODES, all);
	assert_int_equal(libsmctrl_set_global_mask_ext(only(some)), 0);
	graph_assert_ran(exec, NODES, some);
	assert_int_equal(libsmctrl_set_stream_mask_ext(NULL, only(some)), 0);
	assert_int_equal(libsmctrl_set_next_mask_ext(only_range(9, 9)), 0);
	/* Its nodes must now be uploaded again. */
	assert_int_equal(libsmctrl_set_global_mask_ext(only(others)), 0);
	graph_assert_ran(exec, NODES, others);
	assert_runs_in_range(NULL, 9, 9);
	assert_runs_in(NULL, some);
	assert_int_equal(libsmctrl_set_global_mask(0), 0);
	graph_assert_ran(exec, NODES, all);
	assert_int_equal(gpu_counted(SEGMENT_STALE_GRAPH), 0);
	graph_end(exec, graph);
}

/* --- errors -------------------------------------------------------------------------------------------------- */

TEST(make_mask)
{
	uint64_t narrow = 7;
	uint128_t wide = 7;

	assert_int_equal(libsmctrl_make_mask(&narrow, 5, 10), 0);
	assert_int_equal(narrow, ~UINT64_C(0x3e0));
	assert_int_equal(libsmctrl_make_mask(&narrow, 0, 64), 0);
	assert_int_equal(narrow, 0);
	assert_int_equal(libsmctrl_make_mask_ext(&wide, 60, 70), 0);
	assert_true(wide == only_range(60, 69));
	assert_int_equal(libsmctrl_make_mask_ext(&wide, 0, 128), 0);
	assert_true(wide == 0);
	assert_int_equal(libsmctrl_make_mask(&narrow, 3, 3), EINVAL);
	assert_int_equal(libsmctrl_make_mask(&narrow, 4, 3), EINVAL);
	assert_int_equal(libsmctrl_make_mask(&narrow, 0, 65), EINVAL);
	assert_int_equal(libsmctrl_make_mask_ext(&wide, 0, 129), EINVAL);
	assert_int_equal(libsmctrl_make_mask_ext(&wide, 200, UINT32_MAX), EINVAL);
	assert_int_equal(narrow, 0);
	assert_true(wide == 0);
}

TEST(counts)
{
	uint32_t count = 0;

	assert_int_equal(libsmctrl_get_tpc_info_cuda(&count, 0), 0);
	assert_int_equal(count, gpu.topology->tpc_count);
	assert_int_equal(libsmctrl_get_tpc_info(&count, 0), 0);
	assert_int_equal(libsmctrl_get_tpc_info(&count, -1), ENODEV);
	assert_int_equal(libsmctrl_get_tpc_info(&count, 1000), ENODEV);
	assert_int_equal(libsmctrl_get_tpc_info_cuda(&count, -1), ENODEV);
	assert_int_equal(libsmctrl_get_tpc_info_cuda(&count, 1000), ENODEV);
}

TEST(gpcs)
{
	uint32_t count, tpcs = 0, narrow_count;
	uint128_t *wide, seen = 0;
	uint64_t *narrow;
	int error = libsmctrl_get_gpc_info_ext(&count, &wide, 0);

	if (error == ENOENT)
		gpu_skip("the GPCs of this GPU are not known");
	assert_int_equal(error, 0);
	for (uint32_t i = 0; i < count; i++) {
		struct tpcset set = {{(uint64_t)wide[i], (uint64_t)(wide[i] >> 64)}};

		assert_true(wide[i] != 0 && (wide[i] & seen) == 0);
		seen |= wide[i];
		assert_int_equal(libsmctrl_set_next_mask_ext(~wide[i]), 0);
		assert_runs_in(NULL, set);
	}
	for (uint128_t rest = seen; rest != 0; rest &= rest - 1)
		tpcs++;
	assert_int_equal(libsmctrl_get_tpc_info(&narrow_count, 0), 0);
	assert_int_equal(tpcs, narrow_count);
	error = libsmctrl_get_gpc_info(&narrow_count, &narrow, 0);
	assert_int_equal(error, tpcs > 64 ? ERANGE : 0);
	for (uint32_t i = 0; i < count && error == 0; i++)
		assert_true(narrow[i] == wide[i]);
	assert_int_equal(libsmctrl_get_gpc_info(&count, &narrow, 1000), ENODEV);
	assert_int_equal(libsmctrl_get_gpc_info_ext(&count, &wide, -1), ENODEV);
}

static int set_up(void **state)
{
	graph_set_up(state);
	all = gpu_all(&gpu);
	return libsmctrl_init();
}

FIXTURE(clear)
{
	libsmctrl_set_next_mask(0);
	libsmctrl_set_stream_mask(NULL, 0);
	libsmctrl_set_global_mask(0);
	gpu_set_partition(&gpu, all);
}

RUN_TESTS_IN(set_up, NULL, NULL, clear)
