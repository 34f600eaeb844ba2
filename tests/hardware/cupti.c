/*
 * CUPTI itself, with the calls of its sample programs, in a process that has a partition: CUPTI gets all events that it
 * would get without nvtaskset, and the partition is in force before, meanwhile and afterwards.
 */
#include "../cases.h"
#include "gpu.h"
#include "tool.h"

#define TIMES 3

static struct gpu_under_test gpu;
static struct tpcset set;

static void assert_partition_holds(void)
{
	gpu_assert_runs_in(&gpu, NULL, set);
}

static void well(int result)
{
	assert_int_equal(result, 0);
}

/* One callback, a domain, or all of them. */
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

TEST(callbacks)
{
	check_callbacks(tool_enable_launches);
	check_callbacks(tool_enable_domain);
	check_callbacks(tool_enable_all);
}

TEST(records)
{
	for (int i = 0; i < TIMES; i++) {
		well(tool_trace(true));
		assert_partition_holds();
		assert_int_equal(tool_recorded(), 1);
		well(tool_trace(false));
		assert_partition_holds();
		assert_int_equal(tool_recorded(), 0);
	}
}

TEST(records_and_callbacks)
{
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

TEST(a_change_meanwhile)
{
	well(tool_trace(true));
	set = gpu_range(8, 11);
	gpu_set_partition(&gpu, set);
	assert_partition_holds();
	set = gpu_range(0, 7);
	gpu_set_partition(&gpu, set);
	assert_partition_holds();
	assert_int_equal(tool_recorded(), 2);
	well(tool_trace(false));
}

TEST(it_leaves_and_comes_again)
{
	well(tool_subscribe());
	well(tool_enable_all(true));
	assert_partition_holds();
	well(tool_finalize());
	assert_partition_holds();
	check_callbacks(tool_enable_launches);
}

FIXTURE(set_up)
{
	gpu_initialise();
	gpu_open(&gpu, 0);
	set = gpu_range(0, 7);
	gpu_set_partition(&gpu, set);
}

RUN_TESTS_IN(set_up, NULL, NULL, NULL)
