/*
 * CUPTI itself, with the calls of its sample programs, in a process that has a partition: CUPTI gets all events that it
 * would get without nvtaskset, and the partition is in force before, meanwhile and afterwards.
 */
#include "gpu.h"
#include "tool.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <stddef.h>

#define TIMES 3

static struct gpu_under_test gpu;
static struct tpcset set;

static void assert_partition_holds(void)
{
	struct tpcset ran = gpu_where(&gpu, NULL);

	gpu_assert_equal(&ran, &set);
}

static void well(int result)
{
	assert_int_equal(result, 0);
}

static void check_callbacks(int enable(bool on))
{
	for (int i = 0; i < TIMES; i++) {
		well(tool_subscribe());
		well(enable(true));
		tool_announced();
		assert_partition_holds();
		assert_int_equal(tool_announced(), 1);
		well(enable(false));
		assert_partition_holds();
		assert_int_equal(tool_announced(), 0);
		well(enable(true));
		well(tool_unsubscribe());
		assert_partition_holds();
		assert_int_equal(tool_announced(), 0);
	}
}

static void test_one_callback(void **state)
{
	(void)state;
	check_callbacks(tool_enable_launches);
}

static void test_a_domain(void **state)
{
	(void)state;
	check_callbacks(tool_enable_domain);
}

static void test_all_domains(void **state)
{
	(void)state;
	check_callbacks(tool_enable_all);
}

static void test_records(void **state)
{
	(void)state;
	for (int i = 0; i < TIMES; i++) {
		well(tool_trace(true));
		assert_partition_holds();
		assert_int_equal(tool_recorded(), 1);
		well(tool_trace(false));
		assert_partition_holds();
		assert_int_equal(tool_recorded(), 0);
	}
}

static void test_records_and_callbacks(void **state)
{
	(void)state;
	well(tool_subscribe());
	well(tool_enable_domain(true));
	well(tool_trace(true));
	tool_announced();
	assert_partition_holds();
	assert_int_equal(tool_announced(), 1);
	assert_int_equal(tool_recorded(), 1);
	well(tool_unsubscribe());
	assert_partition_holds();
	assert_int_equal(tool_recorded(), 1);
	well(tool_trace(false));
	assert_partition_holds();
}

static void test_a_change_meanwhile(void **state)
{
	struct tpcset first = set;

	(void)state;
	well(tool_trace(true));
	set = gpu_range(8, 11);
	gpu_set_partition(&gpu, &set);
	assert_partition_holds();
	set = first;
	gpu_set_partition(&gpu, &set);
	assert_partition_holds();
	assert_int_equal(tool_recorded(), 2);
	well(tool_trace(false));
}

static void test_it_leaves_and_comes_again(void **state)
{
	(void)state;
	well(tool_subscribe());
	well(tool_enable_all(true));
	assert_partition_holds();
	well(tool_finalize());
	assert_partition_holds();
	check_callbacks(tool_enable_launches);
}

static int set_up(void **state)
{
	(void)state;
	gpu_initialise();
	gpu_open(&gpu, 0);
	set = gpu_range(0, 7);
	gpu_set_partition(&gpu, &set);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_callback),
		cmocka_unit_test(test_a_domain),
		cmocka_unit_test(test_all_domains),
		cmocka_unit_test(test_records),
		cmocka_unit_test(test_records_and_callbacks),
		cmocka_unit_test(test_a_change_meanwhile),
		cmocka_unit_test(test_it_leaves_and_comes_again),
	};

	return cmocka_run_group_tests_name("cupti", tests, set_up, NULL);
}
