/* A child of fork has a partition of its own, which starts as its parent's: changing one leaves the other. */
#include "../cases.h"
#include "state/segment/layout.h"
#include "state/segment/segment.h"
#include "support/child.h"
#include "support/first_gpu.h"

/* CUDA does not survive a fork: until the last test, only children call cuInit. */
static struct topology_list gpus;

/* Sets the partition of this process on every GPU: before cuInit we do not know which GPU is CUDA's first. */
static void set_partition(struct tpcset set)
{
	for (unsigned int i = 0; i < gpus.count; i++) {
		gpu.topology = &gpus.gpus[i];
		gpu_set_partition(&gpu, set);
	}
}

static void check_partition(struct tpcset expected)
{
	struct segment segment = gpu_own_segment();
	struct segment_revision revision;
	uint64_t number;

	assert_true(segment_read(&segment, &revision, &number));
	assert_int_equal(revision.count, gpus.count);
	for (unsigned int i = 0; i < revision.count; i++)
		gpu_assert_ran(revision.partitions[i].set, expected);
	segment_close(&segment);
}

/* Opens the GPU, launches, and checks where the launch ran. */
static void check_launch(struct tpcset expected)
{
	gpu_set_up(NULL);
	gpu_assert_inside(expected);
	gpu_close(&gpu);
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
	say(child_is_ready);
	hear(parent_has_changed);
	check_partition(gpu_range(2, 3));
	check_launch(gpu_range(2, 3));
}

TEST(parent_changes_its_own)
{
	assert_int_equal(pipe(child_is_ready), 0);
	assert_int_equal(pipe(parent_has_changed), 0);
	set_partition(gpu_range(2, 3));
	struct child child = child_start(outlast_the_parents_change);

	hear(child_is_ready);
	set_partition(gpu_range(7, 7));
	say(parent_has_changed);
	struct child_end end = child_wait(&child);

	child_assert_passed(&end);
	check_partition(gpu_range(7, 7));
}

static void count_as_damaged(void)
{
	gpu_set_up(NULL);
	struct segment_counters before = gpu_counters();

	gpu_launch_empty(&gpu);
	struct segment_counters after = gpu_counters();

	assert_int_equal(after.reasons[SEGMENT_DAMAGED], before.reasons[SEGMENT_DAMAGED] + 1);
	assert_int_equal(after.unrestricted, before.unrestricted + 1);
	gpu_close(&gpu);
}

/* A damaged partition is damaged in the child, too: without a partition, nothing would count as outside. */
TEST_IN_CHILD(damage_is_inherited)
{
	struct segment segment = gpu_own_segment();

	set_partition(gpu_range(2, 3));
	atomic_store(segment.memory->ring[atomic_load(segment.number) % REVISIONS_RING], UINT64_MAX);
	segment_close(&segment);
	child_passes(count_as_damaged);
}

TEST(parent_goes_on)
{
	set_partition(gpu_range(0, 4));
	check_launch(gpu_range(0, 4));
}

/* Without room for the segment's high descriptor number, system calls fail on the way. */
TEST(errno_is_the_programs)
{
	rlim_t limit = limit_to(RLIMIT_NOFILE, 100);

	errno = EDOM;
	pid_t child = fork();

	if (child == 0)
		_exit(errno == EDOM ? 0 : 1);
	limit_to(RLIMIT_NOFILE, limit);
	assert_ends_well(child);
}

/* This thread counts in the first slot: slots of the parent's threads are free in the child. */
static void count_in_the_first_slot(void)
{
	gpu_launch_empty(&gpu);
	struct segment segment = gpu_own_segment();

	assert_int_equal(segment.slots[1].launches[true], 1);
	segment_close(&segment);
}

TEST(slots_of_the_parents_threads_are_free)
{
	if (!gpu_is_simulated())
		gpu_skip("CUDA does not survive a fork");
	gpu_open(&gpu, 0);
	gpu_launch_empty(&gpu);
	child_passes(count_in_the_first_slot);
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
	assert_true(revision_number() < parents_number);
	while (revision_number() < parents_number)
		gpu_set_partition(&gpu, gpu_range(1, 1));
	gpu_assert_inside(gpu_range(1, 1));
}

/* A revision's number belongs to one segment: a thread that has launched in the parent's partition remembers a number
 * of the parent's segment. */
TEST(numbers_are_of_one_segment)
{
	if (!gpu_is_simulated())
		gpu_skip("CUDA does not survive a fork");
	gpu_open(&gpu, 0);
	gpu_set_partition(&gpu, gpu_range(2, 3));
	gpu_assert_inside(gpu_range(2, 3));
	parents_number = revision_number();
	child_passes(change_own_to_the_same_number);
	gpu_assert_inside(gpu_range(2, 3));
	gpu_close(&gpu);
}

/* Loads the library, and with it makes the segment, before the first fork. */
FIXTURE(set_up)
{
	struct error error;

	gpu_load_driver();
	assert_done(topology_load(&gpus, &error));
}

RUN_TESTS_IN(set_up, NULL, NULL, NULL)
