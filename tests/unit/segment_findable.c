/* A program that closes descriptors which it did not open must not lose its segment for good. */
#include "cuda_process.h"
#include "own_segment.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void move_to(unsigned int from, unsigned int to)
{
	struct segment_partition wanted = partition_of(first, from, to);

	assert_int_equal(edit(&wanted, NULL), 0);
}

static void test_nothing_happens_while_it_is_open(void **state)
{
	struct segment owner = make_segment();
	struct segment before = owner;

	(void)state;
	assert_int_equal(segment_keep_findable(&owner, NULL), 0);
	assert_memory_equal(&owner, &before, sizeof owner);
	segment_close(&owner);
}

static void test_found_again_as_it_was(void **state)
{
	struct segment owner = make_segment(), editor;
	struct segment_counters counters;
	_Atomic uint64_t *number = owner.number;

	(void)state;
	load_a_driver();
	move_to(3, 4);
	segment_count_launch(&owner, true);
	segment_count_reason(&owner, SEGMENT_WIDENED);
	close(owner.file);
	assert_int_equal(segment_open(&editor, getpid(), NULL), SEGMENT_NOT_OURS);
	assert_int_equal(segment_absence(getpid()), SEGMENT_CLOSED);
	assert_int_equal(segment_keep_findable(&owner, NULL), 0);
	assert_ptr_equal(owner.number, number);
	assert_int_equal(segment_revision_number(&owner), 2);
	assert_set(&owner, first, 3, 4);
	move_to(5, 9);
	assert_set(&owner, first, 5, 9);
	segment_read_counters(&owner, &counters);
	assert_int_equal(counters.restricted, 1);
	assert_int_equal(counters.reasons[SEGMENT_WIDENED], 1);
	segment_close(&owner);
}

/* The program opens a file of its own with the number of the descriptor that it closed. */
static void test_the_programs_file_stays_open(void **state)
{
	struct segment owner = make_segment();
	int place = owner.file;

	(void)state;
	assert_int_equal(dup2(STDIN_FILENO, place), place);
	assert_int_equal(segment_keep_findable(&owner, NULL), 0);
	assert_int_not_equal(owner.file, place);
	assert_set(&owner, first, 0, 7);
	segment_close(&owner);
	assert_true(fcntl(place, F_GETFD) >= 0);
	owner = make_segment();
	place = owner.file;
	assert_int_equal(dup2(STDIN_FILENO, place), place);
	segment_close(&owner);
	assert_true(fcntl(place, F_GETFD) >= 0);
	close(place);
}

/* Set when the launches that go on meanwhile may end. */
static _Atomic bool done;

static void *launch(void *segment)
{
	while (!atomic_load(&done)) {
		segment_count_launch(segment, true);
		assert_true(segment_revision_number(segment) > 0);
	}
	return NULL;
}

static void test_while_others_launch(void **state)
{
	struct segment owner = make_segment();
	struct segment launchers = owner;
	pthread_t threads[2];

	(void)state;
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, launch, &launchers), 0);
	for (unsigned int i = 0; i < 2000; i++) {
		close(owner.file);
		assert_int_equal(segment_keep_findable(&owner, NULL), 0);
		move_to(i % 60, i % 60 + 1);
		assert_set(&owner, first, i % 60, i % 60 + 1);
	}
	atomic_store(&done, true);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	segment_close(&owner);
}

static void test_old_file_reports_the_move(void **state)
{
	struct segment_partition wanted = partition_of(first, 5, 6);
	struct segment owner = make_segment(), editor;
	struct error error;

	(void)state;
	assert_int_equal(segment_open(&editor, getpid(), NULL), SEGMENT_FOUND);
	close(owner.file);
	assert_int_equal(segment_edit(&editor, &wanted, 1, NULL, NULL), 0);
	assert_false(segment_has_moved(&editor));
	/* The editor has a descriptor of its own, which does not count as the owner's. */
	editor.file = dup2(editor.file, 100);
	assert_int_equal(fcntl(editor.file, F_SETFD, FD_CLOEXEC), 0);
	assert_int_equal(segment_keep_findable(&owner, NULL), 0);
	assert_set(&owner, first, 5, 6);
	assert_true(segment_has_moved(&editor));
	assert_int_equal(segment_edit(&editor, &wanted, 1, NULL, &error), -1);
	assert_string_equal(error.reason, "the partition has moved to a new file just now: try again");
	segment_close(&editor);
	segment_close(&owner);
}

/* The result of an edit is true whenever the owner moves: the edit was made, or must be made again. */
struct race {
	struct segment editor;
	pthread_barrier_t barrier;
	unsigned int moves;
	bool made;
};

static void *edit_once_for_each_move(void *argument)
{
	struct race *race = argument;

	for (unsigned int move = 0; move < race->moves; move++) {
		struct segment_partition wanted = partition_of(first, move % 60, move % 60 + 2);

		pthread_barrier_wait(&race->barrier);
		race->made = segment_edit(&race->editor, &wanted, 1, NULL, NULL) == 0;
		pthread_barrier_wait(&race->barrier);
	}
	return NULL;
}

static void test_no_edit_is_lost_silently(void **state)
{
	struct race race = {.moves = 2000};
	struct segment owner = make_segment();
	pthread_t editor;

	(void)state;
	assert_int_equal(pthread_barrier_init(&race.barrier, NULL, 2), 0);
	assert_int_equal(pthread_create(&editor, NULL, edit_once_for_each_move, &race), 0);
	for (unsigned int move = 0; move < race.moves; move++) {
		assert_int_equal(segment_open(&race.editor, getpid(), NULL), SEGMENT_FOUND);
		close(owner.file);
		pthread_barrier_wait(&race.barrier);
		assert_int_equal(segment_keep_findable(&owner, NULL), 0);
		pthread_barrier_wait(&race.barrier);
		if (race.made)
			assert_set(&owner, first, move % 60, move % 60 + 2);
		segment_close(&race.editor);
	}
	pthread_join(editor, NULL);
	pthread_barrier_destroy(&race.barrier);
	segment_close(&owner);
}

/* A fork that could not make a segment of its own shares its parent's. The parent's has not moved. */
static void test_a_fork_leaves_its_parents_alone(void **state)
{
	struct segment owner = make_segment();
	int status;
	pid_t child = fork();

	(void)state;
	if (child == 0) {
		close(owner.file);
		_exit(segment_keep_findable(&owner, NULL) == 0 ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_false(segment_has_moved(&owner));
	move_to(1, 2);
	assert_set(&owner, first, 1, 2);
	segment_close(&owner);
}

static void test_no_descriptor_left(void **state)
{
	struct segment owner = make_segment();
	struct rlimit before, none;
	struct error error;

	(void)state;
	close(owner.file);
	getrlimit(RLIMIT_NOFILE, &before);
	none = before;
	none.rlim_cur = 0;
	setrlimit(RLIMIT_NOFILE, &none);
	assert_int_equal(segment_keep_findable(&owner, &error), -1);
	setrlimit(RLIMIT_NOFILE, &before);
	assert_string_equal(error.reason, "no shared memory: Too many open files");
	assert_set(&owner, first, 0, 7);
	assert_int_equal(segment_keep_findable(&owner, &error), 0);
	move_to(1, 1);
	assert_set(&owner, first, 1, 1);
	segment_close(&owner);
}

static void test_second_copy_shares_it(void **state)
{
	struct segment owner = make_segment(), second;

	(void)state;
	segment_set_at_work(&owner);
	assert_true(segment_find_own(&second));
	assert_int_equal(second.file, owner.file);
	move_to(20, 21);
	assert_set(&owner, first, 20, 21);
	assert_set(&second, first, 20, 21);
	/* Its launches are counted, but it takes none of the parent's slots. */
	assert_null(counter_slot_take(&second));
	counter_slots_free();
	segment_close(&second);
	segment_close(&owner);
}

/* An editor has others' segments open, and none of its own. */
static void test_segments_of_others_are_not_found(void **state)
{
	struct segment others, own;
	int ready[2];

	(void)state;
	assert_false(segment_find_own(&own));
	assert_int_equal(pipe(ready), 0);
	pid_t child = fork();

	if (child == 0) {
		make_segment();
		if (write(ready[1], "", 1) == 1)
			pause();
		_exit(1);
	}
	assert_int_equal(read(ready[0], &(char){0}, 1), 1);
	assert_int_equal(segment_open(&others, child, NULL), SEGMENT_FOUND);
	assert_true(fcntl(others.file, F_DUPFD_CLOEXEC, 200) >= 200);
	assert_false(segment_find_own(&own));
	segment_close(&others);
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
}

static void assert_written_by_its_user_alone(const struct segment *segment)
{
	struct stat status;

	assert_int_equal(fstat(segment->file, &status), 0);
	assert_int_equal(status.st_mode & 07777, 0644);
}

/* This holds for every umask, and after a move. Access to /proc/PID/fd is another question. */
static void test_only_its_user_may_write_it(void **state)
{
	mode_t before = umask(0);
	struct segment owner = make_segment();

	(void)state;
	assert_written_by_its_user_alone(&owner);
	close(owner.file);
	assert_int_equal(segment_keep_findable(&owner, NULL), 0);
	assert_written_by_its_user_alone(&owner);
	segment_close(&owner);
	umask(before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_happens_while_it_is_open),
		cmocka_unit_test(test_found_again_as_it_was),
		cmocka_unit_test(test_the_programs_file_stays_open),
		cmocka_unit_test(test_while_others_launch),
		cmocka_unit_test(test_old_file_reports_the_move),
		cmocka_unit_test(test_no_edit_is_lost_silently),
		cmocka_unit_test(test_a_fork_leaves_its_parents_alone),
		cmocka_unit_test(test_no_descriptor_left),
		cmocka_unit_test(test_second_copy_shares_it),
		cmocka_unit_test(test_segments_of_others_are_not_found),
		cmocka_unit_test(test_only_its_user_may_write_it),
	};

	return cmocka_run_group_tests_name("segment_findable", tests, NULL, NULL);
}
