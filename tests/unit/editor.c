/* Changing the partitions of running processes: all or none, wherever their segments move to. */
#include "cuda_process.h"
#include "process.h"
#include "state/editor.h"
#include "state/layout.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static struct segment_revision revision_of(unsigned int gpus, unsigned int first, unsigned int last)
{
	struct segment_revision revision;

	memset(&revision, 0, sizeof revision);
	revision.count = gpus;
	for (unsigned int gpu = 0; gpu < gpus; gpu++) {
		revision.partitions[gpu].pci.bus = gpu;
		tpcset_add_range(&revision.partitions[gpu].set, first, last);
	}
	return revision;
}

/* --- processes with a partition ---------------------------------------------------------------------- */

static unsigned int gpus_to_have;

/* 'm': moves its segment; otherwise, after the first order, closes its file. */
static void obey(char order)
{
	static struct segment segment;
	struct segment_revision revision = revision_of(gpus_to_have, 0, 7);

	if (order == 0) {
		close_range(48, ~0U, 0);
		if (segment_create(&segment, &revision, -1, NULL) < 0)
			_exit(1);
	} else {
		close(segment.file);
		if (order == 'm' && segment_keep_findable(&segment, NULL) < 0)
			_exit(1);
	}
}

static struct process start(unsigned int gpus)
{
	gpus_to_have = gpus;
	return process_start(obey);
}

#define COUNT 3

struct family {
	struct process processes[COUNT];
	struct editor editors[COUNT];
};

/* The second process gets this number of GPUs. */
static struct family start_family(unsigned int gpus_of_second)
{
	struct family family;
	struct error error = {.reason = ""};

	for (int i = 0; i < COUNT; i++) {
		family.processes[i] = start(i == 1 ? gpus_of_second : 1);
		if (editor_open(&family.editors[i], family.processes[i].pid, &error) != SEGMENT_FOUND)
			fail_msg("%s", error.reason);
	}
	return family;
}

static void end_family(struct family *family)
{
	for (int i = 0; i < COUNT; i++) {
		editor_close(&family->editors[i]);
		process_end(&family->processes[i]);
	}
}

static void assert_list(struct editor *editor, const char *expected)
{
	struct segment_revision revision;
	char list[TPCSET_TEXT];

	assert_int_equal(editor_read(editor, &revision, NULL), 0);
	assert_string_equal(tpcset_format_list(&revision.partitions[0].set, list), expected);
}

/* --- tests -------------------------------------------------------------------------------------------- */

static void test_all_are_changed(void **state)
{
	struct family family = start_family(1);
	struct segment_revision wanted = revision_of(2, 20, 23), now;

	(void)state;
	assert_int_equal(editor_change(family.editors, COUNT, &wanted, NULL), 0);
	for (int i = 0; i < COUNT; i++) {
		assert_list(&family.editors[i], "20-23");
		assert_int_equal(editor_read(&family.editors[i], &now, NULL), 0);
		assert_int_equal(now.count, 2);
		/* Both GPUs change in one revision. */
		assert_int_equal(segment_revision_number(&family.editors[i].segment), 2);
	}
	end_family(&family);
}

/* One process has no room for another GPU: this is noticed before any partition is written. */
static void test_impossible_change_changes_none(void **state)
{
	struct family family = start_family(SEGMENT_GPUS);
	struct segment_revision wanted = revision_of(1, 20, 23);
	struct error error;

	(void)state;
	wanted.partitions[0].pci.bus = 0xff;
	assert_int_equal(editor_change(family.editors, COUNT, &wanted, &error), -1);
	assert_non_null(strstr(error.reason, "no more fit"));
	for (int i = 0; i < COUNT; i++) {
		assert_list(&family.editors[i], "0-7");
		assert_int_equal(segment_revision_number(&family.editors[i].segment), 1);
	}
	end_family(&family);
}

/* A stopped editor holds the third one's lock. */
static void test_failure_undoes_earlier_changes(void **state)
{
	struct family family = start_family(1);
	struct segment_revision wanted = revision_of(1, 20, 23);
	struct segment stopped;
	struct error error;

	(void)state;
	assert_int_equal(segment_open(&stopped, family.processes[2].pid, NULL), SEGMENT_FOUND);
	assert_int_equal(segment_lock(&stopped, NULL), 0);
	assert_int_equal(editor_change(family.editors, COUNT, &wanted, &error), -1);
	assert_non_null(strstr(error.reason, "by another process, which is stopped; the others have what they had"));
	segment_close(&stopped);
	for (int i = 0; i < COUNT; i++)
		assert_list(&family.editors[i], "0-7");
	/* They were changed, and changed back. */
	assert_int_equal(segment_revision_number(&family.editors[0].segment), 3);
	assert_int_equal(segment_revision_number(&family.editors[2].segment), 1);
	/* Their locks are released. */
	struct editor other;

	assert_int_equal(editor_open(&other, family.processes[0].pid, NULL), SEGMENT_FOUND);
	assert_int_equal(editor_change(&other, 1, &wanted, &error), 0);
	editor_close(&other);
	end_family(&family);
}

/* A later edit by somebody else is not undone. */
static void test_undo_keeps_later_edit(void **state)
{
	struct family family = start_family(1);
	struct segment_revision wanted = revision_of(1, 20, 23), later = revision_of(1, 40, 41);
	struct segment_undo undo;
	struct segment *segment = &family.editors[0].segment;

	(void)state;
	assert_int_equal(segment_edit(segment, wanted.partitions, 1, &undo, NULL), 0);
	assert_int_equal(segment_edit(segment, later.partitions, 1, NULL, NULL), 0);
	assert_int_equal(segment_take_back(segment, &undo, NULL), 0);
	assert_list(&family.editors[0], "40-41");
	end_family(&family);
}

static void test_ended_process_does_not_stop_others(void **state)
{
	struct family family = start_family(1);
	struct segment_revision wanted = revision_of(1, 20, 23);

	(void)state;
	/* It moved and ended: there is no file to follow it to. */
	process_order(&family.processes[2], 'm');
	process_end(&family.processes[2]);
	assert_int_equal(editor_change(family.editors, COUNT, &wanted, NULL), 0);
	assert_list(&family.editors[0], "20-23");
	assert_list(&family.editors[1], "20-23");
	assert_int_equal(editor_change(&family.editors[2], 1, &wanted, NULL), -1);
	editor_close(&family.editors[2]);
	for (int i = 0; i < 2; i++) {
		editor_close(&family.editors[i]);
		process_end(&family.processes[i]);
	}
}

/* --- a segment that moves, or is just being made ---------------------------------------------------------- */

static _Atomic bool done;

/* A program that closes all its descriptors again and again. */
static _Noreturn void keep_moving(void)
{
	struct segment_revision revision = revision_of(1, 0, 7);
	struct segment segment;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	close_range(48, ~0U, 0);
	if (segment_create(&segment, &revision, -1, NULL) < 0)
		_exit(1);
	for (;;) {
		close(segment.file);
		if (segment_keep_findable(&segment, NULL) < 0)
			_exit(1);
	}
}

static void test_moves_are_followed(void **state)
{
	struct segment_revision wanted = revision_of(1, 20, 23);
	pid_t mover = fork();
	struct editor editor;
	struct error error = {.reason = ""};
	int opened = 0, edited = 0;

	/* If it moves faster than a slow editor looks, the editor gives up and says that it is busy. */
	(void)state;
	if (mover == 0) {
		load_a_driver();
		keep_moving();
	}
	for (int i = 0; i < 20000 && edited < 50; i++) {
		enum segment_state found = editor_open(&editor, mover, &error);

		/* Between its close and its next file it has no file; that answer is right, and not tested here. */
		if (found != SEGMENT_FOUND && found != SEGMENT_CLOSED && found != SEGMENT_NO_CUDA && found != SEGMENT_NOT_OURS)
			fail_msg("state %d: %s", found, error.reason);
		if (found != SEGMENT_FOUND)
			continue;
		opened++;
		if (editor_change(&editor, 1, &wanted, &error) == 0)
			edited++;
		else if (!strstr(error.reason, "has closed the file") && error.code != NVTASKSET_ERROR_BUSY)
			fail_msg("%s", error.reason);
		editor_close(&editor);
	}
	kill(mover, SIGKILL);
	assert_int_equal(waitpid(mover, NULL, 0), mover);
	assert_true(opened >= edited && edited >= 50);
}

static unsigned int count_descriptors(void)
{
	unsigned int count = 0;

	for (int file = 0; file < 1024; file++)
		count += fcntl(file, F_GETFD) >= 0;
	return count;
}

static void test_the_old_file_is_closed(void **state)
{
	struct process process = start(1);
	struct editor editor;

	(void)state;
	assert_int_equal(editor_open(&editor, process.pid, NULL), SEGMENT_FOUND);
	unsigned int before = count_descriptors();

	process_order(&process, 'm');
	assert_true(segment_has_moved(&editor.segment));
	assert_int_equal(editor_follow(&editor, NULL), 0);
	assert_int_equal(count_descriptors(), before);
	editor_close(&editor);
	process_end(&process);
}

/* Between memfd_create and the write of the magic, a segment is not ready; that is no error. */
static void *keep_making(void *unused)
{
	struct segment_revision revision = revision_of(1, 0, 7);
	struct segment segment;

	(void)unused;
	while (!atomic_load(&done)) {
		if (segment_create(&segment, &revision, -1, NULL) < 0)
			return "no segment";
		segment_close(&segment);
	}
	return NULL;
}

static void test_waits_for_segment_in_creation(void **state)
{
	pthread_t maker;
	struct editor editor;
	struct error error = {.reason = ""};
	void *failure;
	int found = 0;

	(void)state;
	load_a_driver();
	assert_int_equal(pthread_create(&maker, NULL, keep_making, NULL), 0);
	for (int i = 0; i < 2000; i++) {
		enum segment_state answer = editor_open(&editor, getpid(), &error);

		if (answer == SEGMENT_NOT_READY || answer == SEGMENT_FAILED)
			fail_msg("%s", error.reason);
		found += answer == SEGMENT_FOUND;
		if (answer == SEGMENT_FOUND)
			editor_close(&editor);
	}
	atomic_store(&done, true);
	pthread_join(maker, &failure);
	assert_null(failure);
	assert_true(found > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_are_changed),
		cmocka_unit_test(test_impossible_change_changes_none),
		cmocka_unit_test(test_failure_undoes_earlier_changes),
		cmocka_unit_test(test_undo_keeps_later_edit),
		cmocka_unit_test(test_ended_process_does_not_stop_others),
		cmocka_unit_test(test_moves_are_followed),
		cmocka_unit_test(test_the_old_file_is_closed),
		cmocka_unit_test(test_waits_for_segment_in_creation),
	};

	return cmocka_run_group_tests_name("editor", tests, NULL, NULL);
}
