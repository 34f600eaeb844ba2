#include "edit.h"

#include "base/clock.h"
#include "base/proc.h"
#include "base/purse.h"
#include "base/shared_file.h"
#include "events.h"
#include "find.h"
#include "layout.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* --- one segment ----------------------------------------------------------------------------------------- */

bool segment_has_moved(const struct segment *segment)
{
	return atomic_load_explicit(&segment->memory->magic, memory_order_relaxed) != SEGMENT_MAGIC;
}

/* Puts the next revision in force. -1 with the reason if the owner has moved meanwhile. */
static int publish(struct segment *segment, uint64_t number, const struct segment_revision *revision,
                   struct error *error)
{
	revisions_store(segment->memory->ring, number, revision);
	atomic_store_explicit(&segment->memory->number, number, memory_order_release);
	atomic_thread_fence(memory_order_seq_cst);
	return segment_has_moved(segment)
	               ? error_set_code(error, NVTASKSET_ERROR_BUSY,
	                                "the partition has moved to a new file just now: try again")
	               : 0;
}

/* An idle process follows as well. */
static void tell_edit(const struct segment *segment)
{
	segment_note(segment, &(const struct segment_event){SEGMENT_EDITED, .begin_ns = process_clock_ns()});
	segment_ring(segment);
}

static int publish_edit(struct segment *segment, uint64_t number, const struct segment_revision *revision,
                        struct error *error)
{
	int result = publish(segment, number, revision, error);

	tell_edit(segment);
	return result;
}

static bool read_own(const struct segment *segment, struct segment_revision *own, uint64_t *number)
{
	return revisions_load(segment->memory->ring, &segment->memory->number, own, number);
}

static uint32_t group_seen(const struct segment *segment, const struct segment_revision *in_force)
{
	bool is_lost = segment->memory->group.inode != 0 && !segment->group.memory;

	return is_lost ? GROUP_LEFT : in_force->group;
}

typedef int edit_of_segment(struct segment *segment, const struct segment_revision *given,
                            struct segment_revision *before, struct error *error);

static int edit_with_lock(struct segment *segment, edit_of_segment *edit, const struct segment_revision *given,
                          struct segment_revision *before, struct error *error)
{
	int result = shared_file_lock(segment->file, segment->purse, error);

	if (result == 0) {
		result = edit(segment, given, before, error);
		shared_file_unlock(segment->file);
	}
	return result;
}

static int change_locked(struct segment *segment, const struct segment_revision *wanted,
                         struct segment_revision *before, struct error *error)
{
	struct segment_revision revision, own;
	uint64_t number, unused;

	if (!read_own(segment, &own, &number) || !segment_read(segment, &revision, &unused))
		return error_set_code(error, NVTASKSET_ERROR_DAMAGED, "the segment is damaged");
	if (group_check_within(&segment->group, wanted->partitions, wanted->count, error) < 0)
		return -1;
	if (before)
		*before = revision;
	revision.group = group_seen(segment, &revision);
	return revision_put_all(&revision, wanted, error) == 0 ? publish_edit(segment, number + 1, &revision, error)
	                                                      : -1;
}

int segment_change(struct segment *segment, const struct segment_revision *wanted, struct segment_revision *before,
                   struct error *error)
{
	return edit_with_lock(segment, change_locked, wanted, before, error);
}

/* An editor that dies in the middle has made an edit without a change. */
static int raise_locked(struct segment *segment, const struct segment_revision *given, struct segment_revision *before,
                        struct error *error)
{
	struct segment_revision own;
	uint64_t number;

	(void)given, (void)before;
	if (!read_own(segment, &own, &number))
		return error_set_code(error, NVTASKSET_ERROR_DAMAGED, "the segment is damaged");
	int result = publish(segment, number + 1, &own, error);

	if (result == 0)
		atomic_fetch_add_explicit(&segment->memory->raised, 1, memory_order_release);
	return result;
}

int segment_raise(struct segment *segment, struct error *error)
{
	return edit_with_lock(segment, raise_locked, NULL, NULL, error);
}

static int take_back_locked(struct segment *segment, const struct segment_revision *given,
                            struct segment_revision *before, struct error *error)
{
	struct segment_revision own;
	uint64_t number;

	if (!read_own(segment, &own, &number))
		return error_set_code(error, NVTASKSET_ERROR_DAMAGED, "the segment is damaged");
	return revision_put_back(&own, given, before) ? publish_edit(segment, number + 1, &own, error) : 0;
}

int segment_take_back(struct segment *segment, const struct segment_revision *given, struct segment_revision *before,
                      struct error *error)
{
	return edit_with_lock(segment, take_back_locked, given, before, error);
}

#define COMMAND_NAME "nvtaskset"

/* How long to wait for a segment (editor_open). */
#define WAIT_FOR_COMMAND_MS 10000U
#define WAIT_FOR_MAKER_MS 2000U
#define AGE_BEFORE_EXEC_MS 3000.0
#define AGE_AFTER_EXEC_MS 200.0

/* The most moves of an owner during an edit. Most programs that move do so once in a lifetime. */
#define MOVES_MAX 100

/* --- a process that has just started ------------------------------------------------------------------------------ */

/* Fields of /proc/PID/stat. */
enum {
	STAT_FLAGS = 9,
	FORKED_BEFORE_EXEC = 0x40 /* a flag: PF_FORKNOEXEC */
};

static const char *program_of(pid_t pid, char program[4096])
{
	proc_read_link(program, 4096, "/proc/%d/exe", (int)proc_thread(pid));
	const char *name = strrchr(program, '/');

	return name ? name + 1 : "";
}

/* Whether both processes run the same file, as far as the kernel knows without asking a file system. */
static bool run_the_same(pid_t a, pid_t b)
{
	struct group_identity files[2];
	const pid_t pids[] = {a, b};

	for (int i = 0; i < 2; i++) {
		int file = proc_open(pids[i], "exe", O_PATH);

		files[i] = group_identity_of(file);
		if (file >= 0)
			close(file);
	}
	return group_is_same(files[0], files[1]);
}

/* Whether the process runs our command, which makes a segment and then executes another program. The calling process
 * waits and does not do so. A program that uses the library knows the command by the name only. */
static bool runs_the_command(pid_t pid)
{
	char program[4096];
	bool is_named = pid != getpid() && strcmp(program_of(pid, program), COMMAND_NAME) == 0;
	bool are_we = is_named && strcmp(program_of(getpid(), program), COMMAND_NAME) == 0;

	return is_named && (!are_we || run_the_same(pid, getpid()));
}

static bool has_just_begun(pid_t pid)
{
	char stat[PROC_STAT_TEXT];
	double limit = AGE_AFTER_EXEC_MS;

	proc_stat_read(pid, stat);
	double start = (double)proc_stat_field(stat, PROC_STAT_START) * 1e3 / (double)sysconf(_SC_CLK_TCK);

	if (proc_stat_field(stat, STAT_FLAGS) & FORKED_BEFORE_EXEC)
		limit = AGE_BEFORE_EXEC_MS;
	return stat[0] != '\0' && clock_boot_ms() - start < limit;
}

static bool is_absent(enum segment_state state)
{
	return state == SEGMENT_NO_CUDA || state == SEGMENT_NOT_OURS || state == SEGMENT_SHARED;
}

/* A process past its beginning has made the segment: so the look comes after the question. */
static enum segment_state open_with_patience(struct segment *segment, pid_t pid, struct purse *purse,
                                             struct error *error)
{
	unsigned int patience = WAIT_FOR_COMMAND_MS, waited;
	enum segment_state state;
	bool begins, is_worth_waiting_for;

	do {
		waited = WAIT_FOR_COMMAND_MS - patience;
		/* The order matters: between the two questions, the process may call exec for the command. */
		begins = has_just_begun(pid) || (waited < WAIT_FOR_COMMAND_MS && runs_the_command(pid));
		state = segment_open(segment, pid, purse, error);
		is_worth_waiting_for = (is_absent(state) && begins) ||
		                       (state == SEGMENT_NOT_READY && waited < WAIT_FOR_MAKER_MS);
	} while (is_worth_waiting_for && purse_wait(purse, &patience));
	return state;
}

/* --- holding a process -------------------------------------------------------------------------------------------- */

bool editor_has_ended(const struct editor *editor)
{
	struct pollfd process = {.fd = editor->process, .events = POLLIN};

	return poll(&process, 1, 0) > 0;
}

void editor_ring(const struct editor *editor)
{
	if (!editor_has_ended(editor) && segment_may_write(&editor->segment))
		tell_edit(&editor->segment);
}

/* The error code for a state; `own` for states without a code. */
static enum nvtaskset_error_code code_of(enum segment_state state, enum nvtaskset_error_code own)
{
	static const enum nvtaskset_error_code codes[] = {
		[SEGMENT_NO_PROCESS] = NVTASKSET_ERROR_ENDED,
		[SEGMENT_NOT_PERMITTED] = NVTASKSET_ERROR_NOT_PERMITTED,
		[SEGMENT_NO_CUDA] = NVTASKSET_ERROR_NO_CUDA,
		[SEGMENT_NOT_OURS] = NVTASKSET_ERROR_NO_PARTITION,
		[SEGMENT_NOT_IN_FORCE] = NVTASKSET_ERROR_NOT_IN_FORCE,
		[SEGMENT_CLOSED] = NVTASKSET_ERROR_OUT_OF_REACH,
		[SEGMENT_SHARED] = NVTASKSET_ERROR_SHARED,
		[SEGMENT_FAILED] = 0,
	};

	return codes[state] != 0 ? codes[state] : own;
}

/* Finds the segment of this process, and not of a later process with the same pid. Always passes an error to
 * segment_open: without an error, segment_open does not search all descriptors. */
static enum segment_state find_segment(const struct editor *editor, struct segment *segment, struct error *error)
{
	struct error why = {.reason = ""};
	enum segment_state state = open_with_patience(segment, editor->pid, editor->segment.purse, &why);

	if (editor_has_ended(editor)) {
		segment_close(segment);
		error_set(&why, "pid %d: has ended", (int)editor->pid);
		state = SEGMENT_NO_PROCESS;
	} else if (is_absent(state) && runs_the_command(editor->pid)) {
		error_set(&why, "pid %d: nvtaskset is still starting its program there: try again", (int)editor->pid);
	}
	group_close_file(&segment->group); /* no descriptor is needed to read and obey a group */
	why.code = code_of(state, why.code);
	if (state != SEGMENT_FOUND)
		error_pass(error, &why);
	return state;
}

/* A kernel without pidfds is accepted. On a kernel with pidfds, a lack of descriptors or memory is an error: an editor
 * must not go without a pidfd then. */
static int open_process(struct editor *editor, struct error *error)
{
	editor->process = (int)syscall(SYS_pidfd_open, editor->pid, 0);
	return editor->process < 0 && proc_is_limit(errno)
	               ? error_set_errno(error, "pid %d", (int)editor->pid)
	               : 0;
}

enum segment_state editor_open(struct editor *editor, pid_t pid, struct purse *purse, struct error *error)
{
	enum segment_state state = SEGMENT_FAILED;

	*editor = (struct editor){.pid = pid, .segment = {.file = -1, .purse = purse}};
	if (open_process(editor, error) == 0)
		state = find_segment(editor, &editor->segment, error);
	if (state != SEGMENT_FOUND)
		editor_close(editor);
	return state;
}

enum segment_state editor_look(struct editor *editor, pid_t pid, struct purse *purse)
{
	enum segment_state state = SEGMENT_FAILED;

	*editor = (struct editor){.pid = pid, .segment = {.file = -1}};
	if (open_process(editor, NULL) == 0)
		state = segment_open(&editor->segment, pid, purse, NULL);
	if (editor_has_ended(editor))
		state = SEGMENT_NO_PROCESS;
	group_close_file(&editor->segment.group);
	if (state != SEGMENT_FOUND)
		editor_close(editor);
	return state;
}

void editor_close(struct editor *editor)
{
	segment_close(&editor->segment);
	if (editor->process >= 0)
		close(editor->process);
	editor->process = -1;
}

int editor_follow(struct editor *editor, struct error *error)
{
	struct segment moved;

	if (!segment_has_moved(&editor->segment))
		return 0;
	if (editor->process < 0)
		return error_set_code(error, NVTASKSET_ERROR_STALE, "pid %d: its partition has moved: open it again",
		                      (int)editor->pid);
	if (find_segment(editor, &moved, error) != SEGMENT_FOUND)
		return -1;
	segment_close(&editor->segment);
	editor->segment = moved;
	return 0;
}

int editor_read(struct editor *editor, struct segment_revision *revision, struct error *error)
{
	uint64_t number;

	if (editor_follow(editor, error) < 0)
		return -1;
	return segment_read(&editor->segment, revision, &number)
	               ? 0
	               : error_set_code(error, NVTASKSET_ERROR_DAMAGED, "pid %d: its segment is damaged",
	                                (int)editor->pid);
}

/* --- changing -------------------------------------------------------------------------------------------- */

static int edit_wherever(struct editor *editor, edit_of_segment *edit, const struct segment_revision *given,
                         struct segment_revision *before, struct error *error)
{
	struct error why = {.reason = ""};
	int result = -1;

	for (int move = 0; result < 0 && move < MOVES_MAX; move++) {
		if (editor_follow(editor, error) < 0)
			return -1;
		result = edit(&editor->segment, given, before, &why);
		if (!segment_has_moved(&editor->segment))
			break;
	}
	if (editor_has_ended(editor)) /* the segment stays writable while mapped here */
		result = error_set_code(&why, NVTASKSET_ERROR_ENDED, "has ended");
	if (result < 0) {
		error_reword(&why, "pid %d: %.280s", (int)editor->pid, why.reason);
		error_pass(error, &why);
	}
	return result;
}

int editor_change_one(struct editor *editor, const struct segment_revision *wanted, struct segment_revision *before,
                      struct error *error)
{
	return edit_wherever(editor, segment_change, wanted, before, error);
}

int editor_take_back(struct editor *editor, const struct segment_revision *given, struct segment_revision *before)
{
	return edit_wherever(editor, segment_take_back, given, before, NULL);
}

static int check_all(struct editor *editors, size_t count, const struct segment_revision *wanted, struct error *error)
{
	struct segment_revision revision;
	int result = 0;

	for (size_t i = 0; result == 0 && i < count; i++) {
		if (count > 1 && editor_has_ended(&editors[i]))
			continue;
		result = editor_read(&editors[i], &revision, error);
		if (result == 0)
			result = revision_put_all(&revision, wanted, error);
	}
	return result;
}

/* Takes back the edits of the first `count` editors, and returns the number of failures. All together wait as long as a
 * single edit. */
static size_t take_back(struct editor *editors, size_t count, const struct segment_revision *given,
                        struct segment_revision *before)
{
	struct purse purse = {.wait_ms = WAIT_FOR_MAKER_MS};
	size_t failed = 0;

	for (size_t i = 0; i < count; i++) {
		editors[i].segment.purse = purse_begin(&purse, editors[i].pid) ? &purse : NULL;
		failed += editor_take_back(&editors[i], given, &before[i]) < 0 && !editor_has_ended(&editors[i]);
		editors[i].segment.purse = NULL;
	}
	return failed;
}

static int explain_taken_back(size_t changed, size_t left, struct error *error)
{
	if (error && left > 0)
		error_reword(error, "%.220s; %zu others had been changed before, and %zu of them stay so",
		             error->reason, changed, left);
	else if (error && changed > 0)
		error_reword(error, "%.240s; the others have what they had", error->reason);
	return left > 0 ? EDITOR_SOME : -1;
}

int editor_change(struct editor *editors, size_t count, const struct segment_revision *wanted, struct error *error)
{
	struct purse purse = {.wait_ms = WAIT_FOR_MAKER_MS};
	struct segment_revision *before = calloc(count, sizeof *before);
	size_t changed = 0;
	int result = check_all(editors, count, wanted, error);

	if (count > 0 && !before)
		return error_set_code(error, NVTASKSET_ERROR_NO_MEMORY, "no memory");
	for (; result == 0 && changed < count; changed += result == 0) {
		/* A user who locks all segments makes us wait no longer than for a single segment. */
		editors[changed].segment.purse = count > 1 && purse_begin(&purse, editors[changed].pid) ? &purse : NULL;
		result = editor_change_one(&editors[changed], wanted, &before[changed], error);
		editors[changed].segment.purse = NULL;
		if (result < 0 && count > 1 && editor_has_ended(&editors[changed]))
			result = 0;
	}
	if (result < 0)
		result = explain_taken_back(changed, take_back(editors, changed, wanted, before), error);
	free(before);
	return result;
}
