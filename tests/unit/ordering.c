/* Launched and ended kernels, read without a lock, on whichever processor this is; ThreadSanitizer checks the order. A thread stands
 * for the GPU: it adds to the ended ones once a doorbell has rung (state/kernels/counts.h). */
#include "../cases.h"

#include <pthread.h>

#define TIMES 200000

static _Atomic uint64_t launched, doorbell, ended;

static void *gpu(void *unused)
{
	uint64_t done = 0;

	while (done < TIMES) {
		if (atomic_load_explicit(&doorbell, memory_order_acquire) > done) {
			done++;
			atomic_fetch_add_explicit(&ended, 1, memory_order_release);
		}
	}
	return unused;
}

static void *launches(void *unused)
{
	for (uint64_t i = 1; i <= TIMES; i++) {
		atomic_store_explicit(&launched, i, memory_order_relaxed); /* counts_launch */
		atomic_store_explicit(&doorbell, i, memory_order_release); /* the driver's */
	}
	return unused;
}

TEST(no_kernel_has_ended_before_it_was_launched)
{
	pthread_t threads[2];
	uint64_t over = 0;

	assert_int_equal(pthread_create(&threads[0], NULL, gpu, NULL), 0);
	assert_int_equal(pthread_create(&threads[1], NULL, launches, NULL), 0);
	while (over < TIMES) {
		over = atomic_load_explicit(&ended, memory_order_acquire);
		assert_true(atomic_load_explicit(&launched, memory_order_acquire) >= over);
	}
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
}

RUN_TESTS(NULL, NULL)
