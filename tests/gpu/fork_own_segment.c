/* A child of fork has a partition of its own, which starts as its parent's: changing one leaves the other. */
#include "state/segment.h"
#include "support/child.h"
#include "support/gpu.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <errno.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* CUDA does not survive a fork: until the last test, only children call cuInit. */
static struct topology_list gpus;
static struct gpu_under_test gpu;

/* Sets the partition of this process on every GPU: before cuInit we do not know which GPU is CUDA's first. */
static void set_partition(const struct tpcset *set)
{
	for (unsigned int i = 0; i < gpus.count; i++) {
		gpu.topology = &gpus.gpus[i];
		gpu_set_partition(&gpu, set);
	}
}

static void check_partition(const struct tpcset *expected)
{
	struct segment segment = gpu_own_segment();
	struct segment_revision revision;
	uint64_t number;

	assert_true(segment_read(&segment, &revision, &number));
	assert_int_equal(revision.count, gpus.count);
	for (unsigned int i = 0; i < revision.count; i++)
		gpu_assert_equal(&revision.partitions[i].set, expected);
	segment_close(&segment);
}

/* Opens the GPU, launches, and checks where the launch ran. */
static void check_launch(const struct tpcset *expected)
{
	gpu_initialise();
	gpu_open(&gpu, 0);
	struct tpcset ran = gpu_where(&gpu, NULL);

	gpu_assert_equal(&ran, expected);
	gpu_close(&gpu);
}

static void be_as_the_parent(void)
{
	struct tpcset parents = gpu_range(2, 3);

	check_partition(&parents);
	check_launch(&parents);
}

static void test_starts_as_the_parents(void **state)
{
	struct tpcset set = gpu_range(2, 3);

	(void)state;
	set_partition(&set);
	struct child_end end = child_run(be_as_the_parent);

	child_assert_passed(&end);
}

static void change_own(void)
{
	struct tpcset own = gpu_range(1, 1);

	set_partition(&own);
	check_launch(&own);
}

static void test_child_changes_its_own(void **state)
{
	struct tpcset set = gpu_range(4, 6);

	(void)state;
	set_partition(&set);
	struct child_end end = child_run(change_own);

	child_assert_passed(&end);
	check_partition(&set);
}

/* Pipes. */
static int child_is_ready[2];
static int parent_has_changed[2];

static void say(const int pipe[2])
{
	assert_int_equal(write(pipe[1], "", 1), 1);
}

static void hear(const int pipe[2])
{
	char byte;

	assert_int_equal(read(pipe[0], &byte, 1), 1);
}

static void outlast_the_parents_change(void)
{
	struct tpcset before = gpu_range(2, 3);

	say(child_is_ready);
	hear(parent_has_changed);
	check_partition(&before);
	check_launch(&before);
}

static void test_parent_changes_its_own(void **state)
{
	struct tpcset before = gpu_range(2, 3), after = gpu_range(7, 7);

	(void)state;
	assert_int_equal(pipe(child_is_ready), 0);
	assert_int_equal(pipe(parent_has_changed), 0);
	set_partition(&before);
	struct child child = child_start(outlast_the_parents_change);

	hear(child_is_ready);
	set_partition(&after);
	say(parent_has_changed);
	struct child_end end = child_wait(&child);

	child_assert_passed(&end);
	check_partition(&after);
}

static void change_own_in_a_grandchild(void)
{
	struct tpcset before = gpu_range(2, 3);
	struct child_end end = child_run(change_own);

	child_assert_passed(&end);
	check_partition(&before);
}

static void test_grandchild_has_its_own(void **state)
{
	struct tpcset set = gpu_range(2, 3);

	(void)state;
	set_partition(&set);
	struct child_end end = child_run(change_own_in_a_grandchild);

	child_assert_passed(&end);
	check_partition(&set);
}

static void test_parent_goes_on(void **state)
{
	struct tpcset set = gpu_range(0, 4);

	(void)state;
	set_partition(&set);
	check_launch(&set);
}

/* Without room for the segment's high descriptor number, system calls fail on the way. */
static void test_errno_is_the_programs(void **state)
{
	struct rlimit limit, low;
	int status = -1;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	low = limit;
	low.rlim_cur = 100;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	errno = EDOM;
	pid_t child = fork();

	if (child == 0)
		_exit(errno == EDOM ? 0 : 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_int_equal(status, 0);
}

/* This thread counts in the first slot: slots of the parent's threads are free in the child. */
static void count_in_the_first_slot(void)
{
	gpu_launch_empty(&gpu);
	struct segment segment = gpu_own_segment();

	assert_int_equal(segment.slots[1].launches[true], 1);
	segment_close(&segment);
}

static void test_slots_of_the_parents_threads_are_free(void **state)
{
	(void)state;
	if (!gpu_is_simulated())
		gpu_skip("CUDA does not survive a fork");
	gpu_open(&gpu, 0);
	gpu_launch_empty(&gpu);
	struct child_end end = child_run(count_in_the_first_slot);

	child_assert_passed(&end);
	gpu_close(&gpu);
}

static uint64_t revision_number(void)
{
	struct segment segment = gpu_own_segment();
	uint64_t number = segment_revision_number(&segment);

	segment_close(&segment);
	return number;
}

static uint64_t parents_number;

/* The child launches in the context that its parent has launched in. */
static void change_own_to_the_same_number(void)
{
	struct tpcset own = gpu_range(1, 1);

	assert_true(revision_number() < parents_number);
	while (revision_number() < parents_number)
		gpu_set_partition(&gpu, &own);
	struct tpcset ran = gpu_where(&gpu, NULL);

	gpu_assert_equal(&ran, &own);
}

/* A revision's number belongs to one segment: a thread that has launched in the parent's partition remembers a number
 * of the parent's segment. */
static void test_numbers_are_of_one_segment(void **state)
{
	struct tpcset set = gpu_range(2, 3);

	(void)state;
	if (!gpu_is_simulated())
		gpu_skip("CUDA does not survive a fork");
	gpu_open(&gpu, 0);
	gpu_set_partition(&gpu, &set);
	struct tpcset ran = gpu_where(&gpu, NULL);

	gpu_assert_equal(&ran, &set);
	parents_number = revision_number();
	struct child_end end = child_run(change_own_to_the_same_number);

	child_assert_passed(&end);
	gpu_close(&gpu);
}

/* Loads the library, and with it makes the segment, before the first fork. */
static int set_up(void **state)
{
	struct error error;

	(void)state;
	gpu_load_driver();
	if (topology_load(&gpus, &error) < 0)
		fail_msg("%s", error.reason);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_starts_as_the_parents),  cmocka_unit_test(test_child_changes_its_own),
		cmocka_unit_test(test_parent_changes_its_own), cmocka_unit_test(test_grandchild_has_its_own),
		cmocka_unit_test(test_errno_is_the_programs),  cmocka_unit_test(test_parent_goes_on),
		cmocka_unit_test(test_slots_of_the_parents_threads_are_free),
		cmocka_unit_test(test_numbers_are_of_one_segment),
	};

	return cmocka_run_group_tests_name("fork_own_segment", tests, set_up, NULL);
}
