/* Changing the partitions of running processes: all or none, wherever their segments move to. */
#include "../cases.h"
#include "base/shared_file.h"
#include "process.h"
#include "state/segment/edit.h"
#include "state/segment/find.h"
#include "state/segment/layout.h"
#include "state/segment/owner.h"

static struct error error;

static struct segment_revision revision_of(unsigned int gpus, unsigned int first, unsigned int last)
{
	struct segment_revision revision = {.count = gpus};

	for (unsigned int gpu = 0; gpu < gpus; gpu++) {
		revision.partitions[gpu].pci.bus = gpu;
		tpcset_add_range(&revision.partitions[gpu].set, first, last);
	}
	return revision;
}

/* --- processes with a partition ---------------------------------------------------------------------- */

static unsigned int gpus_to_have;

/* 'm': moves its segment. */
static void obey(char order)
{
	static struct segment segment;
	struct segment_revision revision = revision_of(gpus_to_have, 0, 7);

	if (order == 0) {
		close_range(48, ~0U, 0);
		must(segment_create(&segment, &revision, NULL, -1, -1, NULL) == 0);
	} else {
		close(segment.file);
		must(segment_keep_findable(&segment, NULL) == 0);
	}
}

#define COUNT 3

static struct {
	struct process processes[COUNT];
	struct editor editors[COUNT];
} family;

/* The second process gets this number of GPUs. */
static void start_family(unsigned int gpus_of_second)
{
	for (int i = 0; i < COUNT; i++) {
		gpus_to_have = i == 1 ? gpus_of_second : 1;
		family.processes[i] = process_start(obey);
		assert_int_equal(editor_open(&family.editors[i], family.processes[i].pid, NULL, NULL), SEGMENT_FOUND);
	}
}

FIXTURE(begin)
{
	start_family(1);
}

FIXTURE(end)
{
	for (int i = 0; i < COUNT; i++)
		editor_close(&family.editors[i]);
	processes_end();
}

static void assert_list(struct editor *editor, const char *expected)
{
	struct segment_revision revision;
	char list[TPCSET_TEXT];

	assert_int_equal(editor_read(editor, &revision, NULL), 0);
	assert_string_equal(tpcset_format_list(&revision.partitions[0].set, list), expected);
}

/* One process has no room for another GPU: this is noticed before any partition is written. */
TEST_WITH(NULL, end, impossible_change_changes_none)
{
	struct segment_revision wanted = revision_of(1, 20, 23);

	start_family(SEGMENT_GPUS);
	wanted.partitions[0].pci.bus = 0xff;
	assert_error_has(editor_change(family.editors, COUNT, &wanted, &error), "no more fit");
	assert_int_equal(error.code, NVTASKSET_ERROR_NO_ROOM);
	for (int i = 0; i < COUNT; i++) {
		assert_list(&family.editors[i], "0-7");
		assert_int_equal(segment_revision_number(&family.editors[i].segment), 1);
	}
}

/* A stopped editor holds the third one's lock. */
TEST_WITH(begin, end, failure_undoes_earlier_changes)
{
	struct segment_revision wanted = revision_of(1, 20, 23);
	struct segment stopped;

	assert_int_equal(segment_open(&stopped, family.processes[2].pid, NULL, NULL), SEGMENT_FOUND);
	assert_int_equal(shared_file_lock(stopped.file, NULL, NULL), 0);
	assert_error_has(editor_change(family.editors, COUNT, &wanted, &error),
	                 "another process keeps the partition locked: try again later; the others have what they had");
	segment_close(&stopped);
	for (int i = 0; i < COUNT; i++)
		assert_list(&family.editors[i], "0-7");
	/* They were changed, and changed back. */
	assert_int_equal(segment_revision_number(&family.editors[0].segment), 3);
	assert_int_equal(segment_revision_number(&family.editors[2].segment), 1);
	/* Their locks are released. */
	struct editor other;

	assert_int_equal(editor_open(&other, family.processes[0].pid, NULL, NULL), SEGMENT_FOUND);
	assert_int_equal(editor_change(&other, 1, &wanted, &error), 0);
	editor_close(&other);
}

static void *lock_when_changed(void *segment)
{
	while (segment_revision_number(segment) < 2)
		sched_yield();
	assert_int_equal(shared_file_lock(((struct segment *)segment)->file, NULL, NULL), 0);
	return NULL;
}

/* Meanwhile, another stopped editor takes the first one's lock. */
TEST_WITH(begin, end, what_cannot_be_taken_back_is_told)
{
	struct segment_revision wanted = revision_of(1, 20, 23);
	struct segment first, stopped;

	assert_int_equal(segment_open(&first, family.processes[0].pid, NULL, NULL), SEGMENT_FOUND);
	assert_int_equal(segment_open(&stopped, family.processes[2].pid, NULL, NULL), SEGMENT_FOUND);
	assert_int_equal(shared_file_lock(stopped.file, NULL, NULL), 0);
	pthread_t thread = thread_start(lock_when_changed, &first);

	assert_int_equal(editor_change(family.editors, COUNT, &wanted, &error), EDITOR_SOME);
	pthread_join(thread, NULL);
	assert_non_null(strstr(error.reason, "; 2 others had been changed before, and 1 of them stay so"));
	segment_close(&first);
	segment_close(&stopped);
	assert_list(&family.editors[0], "20-23");
	assert_list(&family.editors[1], "0-7");
	assert_list(&family.editors[2], "0-7");
}

TEST_WITH(begin, end, ended_process_does_not_stop_others)
{
	struct segment_revision wanted = revision_of(1, 20, 23);

	/* It moved and ended: there is no file to follow it to. */
	process_order(&family.processes[2], 'm');
	process_end(&family.processes[2]);
	assert_int_equal(editor_change(family.editors, COUNT, &wanted, NULL), 0);
	assert_list(&family.editors[0], "20-23");
	assert_list(&family.editors[1], "20-23");
	assert_int_equal(editor_change(&family.editors[2], 1, &wanted, NULL), -1);
}

/* --- a process that begins while it is looked at ---------------------------------------------------------- */

static struct process beginner; /* pid 0: there is none */

/* 'x': makes its segment and executes a program, as the command does. */
static void obey_as_the_command(char order)
{
	static struct segment segment;
	struct segment_revision revision = revision_of(1, 0, 7);

	if (order == 'x') {
		close_range(48, ~0U, 0);
		must(segment_create(&segment, &revision, NULL, -1, -1, NULL) == 0);
		must(execlp("sleep", "sleep", "1000", NULL) == 0);
	}
}

/* It executes, and is old by then. */
static void let_the_beginner_go(void)
{
	char order = 'x';

	assert_int_equal(write(beginner.orders, &order, 1), 1);
	assert_int_equal(read(beginner.answers, &order, 1), 0);
	beginner.pid = 0;
	usleep(250000);
}

/* In front of libc's: the beginner goes on as soon as somebody asks for its program. */
ssize_t readlink(const char *path, char *text, size_t room)
{
	char program[32];

	snprintf(program, sizeof program, "/proc/%d/exe", (int)beginner.pid);
	if (beginner.pid != 0 && strcmp(path, program) == 0)
		let_the_beginner_go();
	return readlinkat(AT_FDCWD, path, text, room);
}

TEST_WITH(NULL, end, segment_that_is_made_behind_a_look_is_found)
{
	struct editor *editor = &family.editors[0];

	beginner = process_start(obey_as_the_command);
	assert_int_equal(editor_open(editor, beginner.pid, NULL, &error), SEGMENT_FOUND);
	assert_int_equal(beginner.pid, 0);
	assert_list(editor, "0-7");
}

RUN_TESTS(NULL, NULL)
