/* A changed partition is in force from the next launch on, in every stream and thread. */
#include "support/first_gpu.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>


static void test_next_launch_obeys(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 20; i++) {
		unsigned int first = i % (gpu.topology->tpc_count - 3u);
		struct tpcset set = gpu_range(first, first + 3);

		gpu_set_partition(&gpu, &set);
		struct tpcset ran = gpu_where(&gpu, NULL);

		gpu_assert_equal(&ran, &set);
	}
}

static void test_all_streams_obey(void **state)
{
	CUstream streams[4];
	struct tpcset set = gpu_range(2, 3);

	(void)state;
	for (unsigned int i = 0; i < 4; i++)
		gpu_check(cuStreamCreate(&streams[i], i % 2 ? CU_STREAM_NON_BLOCKING : 0));
	gpu_set_partition(&gpu, &set);
	for (unsigned int i = 0; i < 4; i++) {
		struct tpcset ran = gpu_where(&gpu, streams[i]);

		gpu_assert_equal(&ran, &set);
		gpu_check(cuStreamDestroy_v2(streams[i]));
	}
}

/* A launch keeps the partition that was in force when it was made. */
static void test_launches_in_flight_keep_theirs(void **state)
{
	enum { COUNT = 8 };
	CUdeviceptr outputs[COUNT];
	CUstream streams[COUNT];

	(void)state;
	for (unsigned int i = 0; i < COUNT; i++) {
		gpu_check(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
		outputs[i] = gpu_new_output(&gpu);
	}
	for (unsigned int i = 0; i < COUNT; i++) {
		struct tpcset set = gpu_range(2 * i, 2 * i + 1);

		gpu_set_partition(&gpu, &set);
		gpu_launch_where(&gpu, streams[i], outputs[i]);
	}
	gpu_check(cuCtxSynchronize());
	for (unsigned int i = 0; i < COUNT; i++) {
		struct tpcset set = gpu_range(2 * i, 2 * i + 1);
		struct tpcset ran = gpu_read_tpcs(&gpu, outputs[i], GPU_BLOCKS(&gpu));

		gpu_assert_equal(&ran, &set);
		gpu_check(cuMemFree_v2(outputs[i]));
		gpu_check(cuStreamDestroy_v2(streams[i]));
	}
}

/* --- editors that write wrong sets ------------------------------------------------------------------------ */

/* This set must change nothing: launches stay inside the former partition, and it is counted. */
static void assert_not_believed(const struct tpcset *before, const struct tpcset *set)
{
	struct segment_counters counted;

	gpu_set_partition(&gpu, before);
	gpu_run(&gpu);
	counted = gpu_counters();
	gpu_set_partition(&gpu, set);
	for (int i = 0; i < 2; i++) {
		struct tpcset ran = gpu_where(&gpu, NULL);

		gpu_assert_equal(&ran, before);
	}
	struct segment_counters after = gpu_counters();

	assert_int_equal(after.reasons[SEGMENT_NO_SUCH_TPC], counted.reasons[SEGMENT_NO_SUCH_TPC] + 1);
	assert_int_equal(after.restricted + after.unrestricted, counted.restricted + counted.unrestricted + 2);
	if (tpcset_count(before) < gpu.topology->tpc_count)
		assert_int_equal(after.unrestricted, counted.unrestricted);
}

/* The command and the API write no set without a TPC of this GPU. If something else writes one, the program must
 * neither run outside the partition nor hang. */
static void test_a_set_without_a_tpc_changes_nothing(void **state)
{
	struct tpcset some = gpu_range(1, 3), all = gpu_all(&gpu), others = {{0}};
	const struct tpcset none = {{0}};

	(void)state;
	tpcset_add_range(&others, gpu.topology->tpc_count, TPCSET_MAX - 1);
	assert_not_believed(&some, &none);
	assert_not_believed(&some, &others);
	assert_not_believed(&all, &none);
	gpu_set_partition(&gpu, &some);
	struct tpcset ran = gpu_where(&gpu, NULL);

	gpu_assert_equal(&ran, &some);
}

/* --- many threads --------------------------------------------------------------------------------------- */

#define THREADS 8
#define LAUNCHES 40

/* The two sets between which the editor alternates. A launch must run completely in one of them. */
static struct tpcset low, high;
static atomic_bool stop;

static void *edit_all_the_time(void *unused)
{
	(void)unused;
	while (!atomic_load(&stop)) {
		gpu_set_partition(&gpu, &low);
		gpu_set_partition(&gpu, &high);
	}
	return NULL;
}

static void *launch_many(void *unused)
{
	CUdeviceptr output;
	CUstream stream;
	uintptr_t strays = 0;

	(void)unused;
	gpu_check(cuCtxSetCurrent(gpu.context));
	gpu_check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	output = gpu_new_output(&gpu);
	for (unsigned int i = 0; i < LAUNCHES; i++) {
		struct tpcset ran = gpu_where_into(&gpu, stream, output);

		strays += !tpcset_is_subset(&ran, &low) && !tpcset_is_subset(&ran, &high);
	}
	gpu_check(cuMemFree_v2(output));
	gpu_check(cuStreamDestroy_v2(stream));
	return (void *)strays;
}

static void test_threads_see_one_set_or_the_other(void **state)
{
	pthread_t editor, threads[THREADS];

	(void)state;
	low = gpu_range(0, 3);
	high = gpu_range(gpu.topology->tpc_count - 4u, gpu.topology->tpc_count - 1u);
	gpu_set_partition(&gpu, &low);
	atomic_store(&stop, false);
	assert_int_equal(pthread_create(&editor, NULL, edit_all_the_time, NULL), 0);
	for (unsigned int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, launch_many, NULL), 0);
	for (unsigned int i = 0; i < THREADS; i++) {
		void *strays;

		pthread_join(threads[i], &strays);
		assert_null(strays);
	}
	atomic_store(&stop, true);
	pthread_join(editor, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_next_launch_obeys),
		cmocka_unit_test(test_all_streams_obey),
		cmocka_unit_test(test_launches_in_flight_keep_theirs),
		cmocka_unit_test(test_a_set_without_a_tpc_changes_nothing),
		cmocka_unit_test(test_threads_see_one_set_or_the_other),
	};

	return cmocka_run_group_tests_name("live_change", tests, gpu_set_up, NULL);
}
