#include "attach/attach.h"

#ifdef __x86_64__

#include "attach/borrowed_thread.h"
#include "attach/target.h"
#include "attach/threads.h"
#include "base/clock.h"
#include "base/proc.h"
#include "state/segment/find.h"
#include "tasks.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

/* How often we look for a thread to borrow, and the pause between two looks. */
#define ROUNDS 100
#define ROUND_US 20000

/* How long we wait for another nvtaskset on the same process. */
#define LOCK_WAIT_MS 15000

/* --- finding a thread --------------------------------------------------------------------------------------------- */

/* Work for a borrowed thread, and the bytes of room for the work. */
struct task {
	size_t room;
	/* Closes `borrowed`. BORROW_DONE: the work is done. */
	enum borrow_answer (*run)(const struct task *task, pid_t pid, struct borrowed_thread *borrowed);
	const struct library *library;
	const struct segment_gift *gift;
};

static bool has_library(pid_t pid)
{
	struct segment segment;
	bool found = segment_open(&segment, pid, NULL, NULL) == SEGMENT_FOUND && segment_is_at_work(&segment, pid);

	segment_close(&segment);
	return found;
}

static enum borrow_answer give(const struct task *task, pid_t pid, struct borrowed_thread *borrowed)
{
	int result = attach_segment_give(task->gift, borrowed);

	(void)pid;
	borrowed_close(borrowed);
	return result == 0 ? BORROW_DONE : BORROW_FAILED;
}

/* If we did not see the result, the segment shows whether the library was loaded, to avoid a second loading. */
static enum borrow_answer load_into(const struct task *task, pid_t pid, struct borrowed_thread *borrowed)
{
	enum borrow_answer answer = BORROW_FAILED;
	int result = attach_load_library(task->library, borrowed);

	borrowed_close(borrowed);
	if (result == 0 || (result == LIBRARY_UNSEEN && has_library(pid)))
		answer = BORROW_DONE;
	else if (result == LIBRARY_UNSEEN)
		answer = BORROW_RETRY;
	return answer;
}

static enum borrow_answer try_thread(const struct target *target, pid_t thread, const struct task *task,
                                     struct attach_report *report, struct error *error)
{
	static struct borrowed_thread borrowed; /* large */
	double start = clock_ms();
	bool stopped;
	enum borrow_answer answer = borrowed_open(&borrowed, target, thread, task->room, &stopped, error);

	if (answer == BORROW_DONE)
		answer = task->run(task, target->pid, &borrowed);
	report->tries += stopped;
	report->thread = thread;
	report->seconds = (clock_ms() - start) / 1e3;
	return answer;
}

static enum borrow_answer look_around(pid_t pid, const struct task *task, struct attach_report *report,
                                      struct error *error)
{
	enum borrow_answer answer = BORROW_RETRY;
	struct target target;
	struct thread_candidate *threads;

	if (target_open(&target, pid, error) < 0)
		return BORROW_FAILED;
	size_t count = threads_choose(&target, &threads);

	if (threads_check_filters(&target, error) < 0)
		answer = BORROW_FAILED;
	for (size_t i = 0; i < count && answer == BORROW_RETRY; i++)
		answer = try_thread(&target, threads[i].thread, task, report, error);
	free(threads);
	target_close(&target);
	return answer;
}

static int try_for_a_while(pid_t pid, const struct task *task, struct attach_report *report, struct error *error)
{
	enum borrow_answer answer = BORROW_RETRY;

	for (int round = 0; round < ROUNDS && answer == BORROW_RETRY; round++) {
		if (round > 0)
			clock_pause_us(ROUND_US);
		answer = look_around(pid, task, report, error);
	}
	if (answer == BORROW_RETRY)
		error_set(error,
		          "pid %d: none of its threads could be borrowed: each was in the middle of something; try "
		          "again",
		          (int)pid);
	return answer == BORROW_DONE ? 0 : -1;
}

/* --- one at a time ------------------------------------------------------------------------------------------------ */

/* Locks the process's directory in /proc, against other attachers, until our end at most. -1 with the reason. */
static int lock_process(pid_t pid, struct error *error)
{
	int directory = proc_open(pid, "", O_RDONLY | O_DIRECTORY);

	if (directory < 0)
		return target_explain(pid, errno, error);
	int locked = flock(directory, LOCK_EX | LOCK_NB);

	for (int waited = 0; locked < 0 && errno == EWOULDBLOCK && waited < LOCK_WAIT_MS; waited++) {
		clock_pause_us(1000);
		locked = flock(directory, LOCK_EX | LOCK_NB);
	}
	if (locked < 0) {
		error_set_errno(error, "pid %d: somebody else is attaching to it", (int)pid);
		close(directory);
		directory = -1;
	}
	return directory;
}

static int load_locked(pid_t pid, const char *path, const char *argument, struct attach_report *report,
                       struct error *error)
{
	struct library library = {.argument = argument};
	int result = attach_read_library(&library, path, error);

	if (result < 0)
		return -1;
	const struct task task = {.room = attach_library_room(&library), .run = load_into, .library = &library};

	result = target_check_file_limit(pid, "our library", library.size, error);
	if (result == 0)
		result = try_for_a_while(pid, &task, report, error);
	free(library.content);
	return result;
}

int attach_load(pid_t pid, const char *path, const char *argument, struct attach_report *report, struct error *error)
{
	int lock = lock_process(pid, error), result = 0;

	*report = (struct attach_report){.thread = 0};
	if (lock < 0)
		return -1;
	if (!has_library(pid))
		result = load_locked(pid, path, argument, report, error);
	close(lock);
	return result;
}

static int give_locked(pid_t pid, struct attach_report *report, struct error *error)
{
	static struct segment_gift gift; /* large */
	const struct task task = {.room = sizeof gift.room, .run = give, .gift = &gift};
	int result = attach_segment_prepare(&gift, pid, error);

	return result == 0 ? try_for_a_while(pid, &task, report, error) : result;
}

int attach_give_segment(pid_t pid, struct attach_report *report, struct error *error)
{
	int lock = lock_process(pid, error), result = -1;

	*report = (struct attach_report){.thread = 0};
	if (lock >= 0) {
		result = segment_exists(pid) ? 0 : give_locked(pid, report, error);
		close(lock);
	}
	return result;
}

#else

int attach_give_segment(pid_t pid, struct attach_report *report, struct error *error)
{
	return attach_load(pid, NULL, NULL, report, error);
}

int attach_load(pid_t pid, const char *path, const char *argument, struct attach_report *report, struct error *error)
{
	(void)path;
	(void)argument;
	*report = (struct attach_report){.thread = 0};
	return error_set(error, "pid %d: processes can be attached to on x86-64 only, so far", (int)pid);
}

#endif
