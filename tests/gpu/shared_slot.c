/*
 * The driver has one subscriber slot, and we are in it; profilers work all the same, and whatever they enable, disable
 * or leave, the partition holds (FACTS 1).
 */
#include "support/subscriber.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

typedef CUresult table_enable_domain(uint32_t on, uint32_t handle, int domain);
typedef CUresult table_enable_all(uint32_t on, uint32_t handle);

enum {
	TABLE_ENABLE_DOMAIN = 7,
	TABLE_ENABLE_ALL = 8
};

static struct gpu_under_test gpu;
static struct tpcset set;

static void assert_partition_holds(void)
{
	struct tpcset ran = gpu_where(&gpu, NULL);

	gpu_assert_equal(&ran, &set);
}

/* Counts alone: enabling everything announces more than a test remembers. */
static struct {
	uint32_t handle;
	unsigned int launches;
	unsigned int others;
} counter;

static void count(void *user, int domain, int id, const void *parameters)
{
	(void)parameters;
	assert_ptr_equal(user, &counter);
	if (domain == LAUNCHES && id == BEFORE_UPLOAD)
		counter.launches++;
	else
		counter.others++;
}

static CUresult subscribe_counter(uint32_t *handle)
{
	table_subscribe_with_name *subscribe =
		(table_subscribe_with_name *)subscriber_table()[TABLE_SUBSCRIBE_WITH_NAME];

	return subscribe(handle, count, &counter, "test");
}

static void unsubscribe_counter(void)
{
	gpu_check(((table_unsubscribe *)subscriber_table()[TABLE_UNSUBSCRIBE])(counter.handle));
}

static CUresult enable_launches(bool on)
{
	table_enable *enable = (table_enable *)subscriber_table()[TABLE_ENABLE];

	return enable(on, counter.handle, LAUNCHES, BEFORE_UPLOAD);
}

static CUresult enable_domain(bool on)
{
	table_enable_domain *enable = (table_enable_domain *)subscriber_table()[TABLE_ENABLE_DOMAIN];

	return enable(on, counter.handle, LAUNCHES);
}

static CUresult enable_all(bool on)
{
	return ((table_enable_all *)subscriber_table()[TABLE_ENABLE_ALL])(on, counter.handle);
}

/* --- the tests --------------------------------------------------------------------------------------------- */

static void test_a_profiler_sees_what_the_gpu_will(void **state)
{
	(void)state;
	subscriber_open(NULL);
	assert_partition_holds();
	assert_int_equal(subscriber_count(LAUNCHES, BEFORE_UPLOAD), 1);
	assert_ptr_equal((void *)(uintptr_t)subscriber_last(LAUNCHES, BEFORE_UPLOAD)->words[1], gpu.context);
	subscriber_close();
}

static void test_one_profiler_at_a_time(void **state)
{
	uint32_t second;

	(void)state;
	gpu_check(subscribe_counter(&counter.handle));
	assert_int_equal(subscribe_counter(&second), CUDA_ERROR_ALREADY_ACQUIRED);
	unsubscribe_counter();
	gpu_check(subscribe_counter(&counter.handle));
	unsubscribe_counter();
}

/* Turns launch events on and off in one way. */
static void check_enabling(CUresult enable(bool on))
{
	gpu_check(subscribe_counter(&counter.handle));
	counter.launches = 0;
	assert_partition_holds();
	assert_int_equal(counter.launches, 0);
	gpu_check(enable(true));
	assert_partition_holds();
	assert_int_equal(counter.launches, 1);
	gpu_check(enable(false));
	assert_partition_holds();
	assert_int_equal(counter.launches, 1);
	gpu_check(enable(true));
	unsubscribe_counter();
	assert_partition_holds();
	assert_int_equal(counter.launches, 1);
}

static void test_an_event_on_and_off(void **state)
{
	(void)state;
	check_enabling(enable_launches);
}

static void test_a_domain_on_and_off(void **state)
{
	(void)state;
	check_enabling(enable_domain);
}

static void test_everything_on_and_off(void **state)
{
	(void)state;
	counter.others = 0;
	check_enabling(enable_all);
	assert_true(counter.others > 0);
}

static void test_nothing_for_who_has_left(void **state)
{
	(void)state;
	gpu_check(subscribe_counter(&counter.handle));
	unsubscribe_counter();
	assert_int_not_equal(enable_launches(true), CUDA_SUCCESS);
	assert_int_not_equal(enable_all(true), CUDA_SUCCESS);
	assert_partition_holds();
}

static int set_up(void **state)
{
	(void)state;
	gpu_initialise();
	gpu_open(&gpu, 0);
	set = gpu_range(2, 5);
	gpu_set_partition(&gpu, &set);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_profiler_sees_what_the_gpu_will),
		cmocka_unit_test(test_one_profiler_at_a_time),
		cmocka_unit_test(test_an_event_on_and_off),
		cmocka_unit_test(test_a_domain_on_and_off),
		cmocka_unit_test(test_everything_on_and_off),
		cmocka_unit_test(test_nothing_for_who_has_left),
	};

	return cmocka_run_group_tests_name("shared_slot", tests, set_up, NULL);
}
