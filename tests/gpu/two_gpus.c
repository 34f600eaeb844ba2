/* Each GPU of a process has a partition of its own: a launch runs in the one of its context's GPU. */
#include "support/gpu.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <pthread.h>

#define LAUNCHES 20

static struct gpu_under_test gpus[2];
static int count;

static void need_two(void)
{
	if (count < 2)
		gpu_skip("there is one GPU only");
}

static struct tpcset where(const struct gpu_under_test *gpu)
{
	gpu_check(cuCtxSetCurrent(gpu->context));
	return gpu_where(gpu, NULL);
}

static void check(const struct gpu_under_test *gpu, const struct tpcset *set)
{
	struct tpcset ran = where(gpu);

	gpu_assert_equal(&ran, set);
}

static void test_each_has_its_own(void **state)
{
	struct tpcset first = gpu_range(0, 3), second = gpu_range(8, 11);

	(void)state;
	need_two();
	gpu_set_partition(&gpus[0], &first);
	gpu_set_partition(&gpus[1], &second);
	check(&gpus[0], &first);
	check(&gpus[1], &second);
	check(&gpus[0], &first);
}

static void test_changing_one_leaves_the_other(void **state)
{
	struct tpcset one = gpu_range(5, 5);

	(void)state;
	need_two();
	struct tpcset all = gpu_all(&gpus[1]);

	gpu_set_partition(&gpus[1], &all);
	gpu_set_partition(&gpus[0], &one);
	check(&gpus[0], &one);
	check(&gpus[1], &all);
}

static void *launch_many(void *data)
{
	const struct gpu_under_test *gpu = data;
	struct tpcset own = gpu == &gpus[0] ? gpu_range(0, 1) : gpu_range(4, 7);

	for (unsigned int i = 0; i < LAUNCHES; i++)
		check(gpu, &own);
	return NULL;
}

static void test_both_at_once(void **state)
{
	struct tpcset first = gpu_range(0, 1), second = gpu_range(4, 7);
	pthread_t threads[2];

	(void)state;
	need_two();
	gpu_set_partition(&gpus[0], &first);
	gpu_set_partition(&gpus[1], &second);
	for (unsigned int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, launch_many, &gpus[i]), 0);
	for (unsigned int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
}

/* Drivers give a handle again. Data of the context that had it before is then no longer valid. */
static void test_context_handle_reused_on_another_gpu(void **state)
{
	struct tpcset own[] = {gpu_range(0, 3), gpu_range(8, 11)};
	struct gpu_under_test gpu;
	CUcontext before = NULL;
	int again = 0;

	(void)state;
	need_two();
	for (unsigned int i = 0; i < 2; i++)
		gpu_set_partition(&gpus[i], &own[i]);
	for (int i = 0; i < 6; i++) {
		gpu_open(&gpu, i % 2);
		check(&gpu, &own[i % 2]);
		again += gpu.context == before;
		before = gpu.context;
		gpu_close(&gpu);
	}
	print_message("# %d of 5 contexts had the handle of the one before, on the other GPU\n", again);
}

static int open_gpus(void **state)
{
	(void)state;
	count = gpu_initialise();
	for (int i = 0; i < 2 && i < count; i++)
		gpu_open(&gpus[i], i);
	return 0;
}

/* Waits until all that was launched has ended: the count may be seen later than the end. */
static struct counts_of_gpu kernels_at_rest(const struct gpu_under_test *gpu)
{
	uint32_t gaps;
	struct counts_of_gpu kernels = gpu_kernels(gpu, &gaps);

	while (gaps == 0 && kernels.ended < kernels.launched)
		kernels = gpu_kernels(gpu, &gaps);
	if (gaps & 1 << COUNTS_NO_SLOTS)
		gpu_skip("this GPU's launch descriptors have no slot that counts");
	assert_int_equal(gaps, 0);
	return kernels;
}

/* One thread, on one GPU and the other in turns. */
static void test_kernels_are_counted_on_their_gpu(void **state)
{
	struct counts_of_gpu before[2];

	(void)state;
	need_two();
	for (int i = 0; i < 2; i++)
		before[i] = kernels_at_rest(&gpus[i]);
	for (unsigned int launch = 0; launch < 3 * LAUNCHES; launch++) {
		const struct gpu_under_test *gpu = &gpus[launch % 3 == 0];

		gpu_check(cuCtxSetCurrent(gpu->context));
		gpu_launch_empty(gpu);
		gpu_check(cuCtxSynchronize());
	}
	for (int i = 0; i < 2; i++) {
		struct counts_of_gpu kernels = kernels_at_rest(&gpus[i]);

		assert_int_equal(kernels.launched - before[i].launched, i == 0 ? 2 * LAUNCHES : LAUNCHES);
		assert_int_equal(kernels.ended - before[i].ended, i == 0 ? 2 * LAUNCHES : LAUNCHES);
	}
}

static int close_gpus(void **state)
{
	(void)state;
	for (int i = 0; i < 2 && i < count; i++) {
		gpu_check(cuCtxSetCurrent(gpus[i].context));
		gpu_close(&gpus[i]);
	}
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_has_its_own),
		cmocka_unit_test(test_changing_one_leaves_the_other),
		cmocka_unit_test(test_both_at_once),
		cmocka_unit_test(test_kernels_are_counted_on_their_gpu),
		cmocka_unit_test(test_context_handle_reused_on_another_gpu),
	};

	return cmocka_run_group_tests_name("two_gpus", tests, open_gpus, close_gpus);
}
