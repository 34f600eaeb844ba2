/* A program that closes descriptors which it did not open must not lose its segment for good. */
#include "../cases.h"
#include "cuda_process.h"
#include "own_segment.h"
#include "process.h"

#include "base/identity.h"
#include "base/proc.h"
#include "state/segment/edit.h"
#include "state/segment/find.h"
#include "state/segment/owner.h"

static void move_to(unsigned int from, unsigned int to)
{
	struct segment editor;

	assert_int_equal(segment_open(&editor, getpid(), NULL, NULL), SEGMENT_FOUND);
	assert_int_equal(change(&editor, first, from, to), 0);
	segment_close(&editor);
}

TEST(found_again_as_it_was)
{
	struct segment editor;
	struct segment_counters counters;
	_Atomic uint64_t *number = owner.number;

	load_a_driver();
	move_to(3, 4);
	segment_count_launch(&owner, true);
	segment_count_reason(&owner, SEGMENT_WIDENED);
	close(owner.file);
	assert_int_equal(segment_open(&editor, getpid(), NULL, NULL), SEGMENT_NOT_OURS);
	assert_int_equal(segment_absence(getpid(), NULL), SEGMENT_CLOSED);
	assert_int_equal(segment_keep_findable(&owner, NULL), 0);
	assert_ptr_equal(owner.number, number);
	assert_int_equal(segment_revision_number(&owner), 2);
	assert_set(&owner, first, 3, 4);
	move_to(5, 9);
	assert_set(&owner, first, 5, 9);
	segment_read_counters(&owner, &counters);
	assert_each(counters.restricted, 1, counters.reasons[SEGMENT_WIDENED], 1);
}

/* The program opens a file of its own with the number of the descriptor that it closed. */
TEST(the_programs_file_stays_open)
{
	int place = owner.file;

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

TEST(while_others_launch)
{
	struct segment launchers = owner;
	pthread_t threads[] = {thread_start(launch, &launchers), thread_start(launch, &launchers)};

	for (unsigned int i = 0; i < 2000; i++) {
		close(owner.file);
		assert_int_equal(segment_keep_findable(&owner, NULL), 0);
		move_to(i % 60, i % 60 + 1);
		assert_set(&owner, first, i % 60, i % 60 + 1);
	}
	atomic_store(&done, true);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
}

TEST(old_file_reports_the_move)
{
	struct segment_partition wanted = partition_of(first, 5, 6);
	struct segment_revision revision = revision_of(&wanted);
	struct segment editor;
	struct error error;

	assert_int_equal(segment_open(&editor, getpid(), NULL, NULL), SEGMENT_FOUND);
	close(owner.file);
	assert_int_equal(segment_change(&editor, &revision, NULL, NULL), 0);
	assert_false(segment_has_moved(&editor));
	/* The editor has a descriptor of its own, which does not count as the owner's. */
	editor.file = dup2(editor.file, 100);
	assert_int_equal(fcntl(editor.file, F_SETFD, FD_CLOEXEC), 0);
	assert_int_equal(segment_keep_findable(&owner, NULL), 0);
	assert_set(&owner, first, 5, 6);
	assert_true(segment_has_moved(&editor));
	assert_error(segment_change(&editor, &revision, NULL, &error), "the partition has moved to a new file just now: try again");
	segment_close(&editor);
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
		pthread_barrier_wait(&race->barrier);
		race->made = change(&race->editor, first, move % 60, move % 60 + 2) == 0;
		pthread_barrier_wait(&race->barrier);
	}
	return NULL;
}

TEST(no_edit_is_lost_silently)
{
	struct race race = {.moves = 2000};

	assert_int_equal(pthread_barrier_init(&race.barrier, NULL, 2), 0);
	pthread_t editor = thread_start(edit_once_for_each_move, &race);

	for (unsigned int move = 0; move < race.moves; move++) {
		assert_int_equal(segment_open(&race.editor, getpid(), NULL, NULL), SEGMENT_FOUND);
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
}

TEST(second_copy_shares_it)
{
	struct segment second;

	segment_set_at_work(&owner);
	assert_true(segment_find_own(&second));
	assert_int_equal(second.file, owner.file);
	move_to(20, 21);
	assert_set(&owner, first, 20, 21);
	assert_set(&second, first, 20, 21);
	/* Its launches are counted, but it takes none of the parent's slots. */
	assert_null(segment_slot_take(&second));
	segment_slots_forget();
	segment_close(&second);
}

static void have_segment(char order)
{
	if (order == 'e')
		process_end_first_thread();
	make_segment();
}

/* The kernel shows nothing of its own in its entry in /proc. */
TEST_WITH(no_fixture, NULL, process_without_its_first_thread)
{
	struct process other = process_start(have_segment);
	uint64_t execution = identity_execution_of(other.pid);
	struct segment segment;

	process_order_end_of_first_thread(&other, 'e');
	int descriptors = count_descriptors();

	assert_int_not_equal(proc_thread(other.pid), other.pid);
	assert_int_equal(identity_execution_of(other.pid), execution);
	assert_int_equal(segment_open(&segment, other.pid, NULL, NULL), SEGMENT_FOUND);
	segment_close(&segment);
	assert_int_equal(count_descriptors(), descriptors);
	kill(other.pid, SIGKILL);
	process_wait(&other, WEXITED);
	assert_int_equal(proc_thread(other.pid), other.pid);
	assert_int_equal(identity_execution_of(other.pid), 0);
	processes_end();
}

/* An editor has others' segments open, and none of its own. */
TEST_WITH(no_fixture, NULL, segments_of_others_are_not_found)
{
	struct segment others, own;

	assert_false(segment_find_own(&own));
	struct process other = process_start(have_segment);

	assert_int_equal(segment_open(&others, other.pid, NULL, NULL), SEGMENT_FOUND);
	assert_true(fcntl(others.file, F_DUPFD_CLOEXEC, 200) >= 200);
	assert_false(segment_find_own(&own));
	segment_close(&others);
	processes_end();
}

/* An editor has a segment, and in front of the segment very many foreign segments. */
TEST(own_segment_behind_those_of_others)
{
	struct process other = process_start(have_segment);
	struct segment others, own;
	struct error error;
	int copies[150];

	assert_int_equal(segment_open(&others, other.pid, NULL, NULL), SEGMENT_FOUND);
	for (size_t i = 0; i < COUNT_OF(copies); i++) {
		copies[i] = fcntl(others.file, F_DUPFD_CLOEXEC, 3);
		assert_in_range(copies[i], 3, owner.file - 1);
	}
	assert_int_equal(segment_open(&own, getpid(), NULL, NULL), SEGMENT_FOUND);
	segment_close(&own);
	assert_int_equal(segment_open(&own, getpid(), NULL, &error), SEGMENT_FOUND);
	segment_close(&own);
	for (size_t i = 0; i < COUNT_OF(copies); i++)
		close(copies[i]);
	segment_close(&others);
	processes_end();
}

static void assert_written_by_its_user_alone(const struct segment *segment)
{
	struct stat status;

	assert_int_equal(fstat(segment->file, &status), 0);
	assert_int_equal(status.st_mode & 07777, 0644);
}

/* This holds for every umask, and after a move. Access to /proc/PID/fd is another question. */
TEST(only_its_user_may_write_it)
{
	mode_t before = umask(0);

	segment_close(&owner);
	owner = make_segment();
	assert_written_by_its_user_alone(&owner);
	close(owner.file);
	assert_int_equal(segment_keep_findable(&owner, NULL), 0);
	assert_written_by_its_user_alone(&owner);
	umask(before);
}

RUN_TESTS(make_owner, close_owner)
