#include "attach/attach.h"

#include "attach/machine.h"
#include "attach/target.h"
#include "attach/threads.h"
#include "attach/tracee.h"
#include "segment.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U /* Linux 6.3 */
#endif

#define LIBRARY_NAME "nvtaskset-library"

/* How often, and how far apart, a thread that can be borrowed is looked for. */
#define ROUNDS 100
#define ROUND_NS 20000000

/* How long another nvtaskset that attaches to the same process is waited for. */
#define LOCK_WAIT_MS 15000

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void pause_for(long nanoseconds)
{
	const struct timespec pause = {.tv_nsec = nanoseconds};

	nanosleep(&pause, NULL);
}

/* --- a borrowed thread --------------------------------------------------------------------------------------------- */

/* What becomes of an attempt. */
enum outcome {
	OUTCOME_DONE,
	OUTCOME_ELSEWHERE, /* this thread cannot be borrowed now: another, or later */
	OUTCOME_FAILED     /* with the reason */
};

struct loan {
	const struct target *target;
	struct tracee tracee;
	bool is_saved;
	struct machine_state state; /* of the thread, as it was */
	uint64_t frame;             /* its way back; 0 before it runs anything of ours */
	struct error *error;
};

/*
 * The memory that the thread works in:
 *
 *   0                   the loading code, which can be run and not written
 *   PAGE                the request, and strings for it
 *   2 * PAGE to the end its stack
 */
#define PAGE 4096
#define MEMORY_SIZE (512 * 1024)

struct strings {
	char path[64], entry[64], name[64];
};

#define REQUEST_AT PAGE
#define STRINGS_AT (PAGE + sizeof(struct machine_request))
#define STRING_AT(memory, which) ((memory) + STRINGS_AT + offsetof(struct strings, which))

static int fail(const struct loan *loan, const char *what, int64_t result)
{
	errno = (int)-result;
	return error_set_errno(loan->error, "pid %d: %s", (int)loan->target->pid, what);
}

/* -1 with the reason. */
static int expect_stop(const struct loan *loan, enum tracee_answer answer)
{
	int result = 0;

	if (answer == TRACEE_GONE)
		result = error_set(loan->error, "pid %d: it has ended", (int)loan->target->pid);
	else if (answer == TRACEE_LATE)
		result = error_set(loan->error, "pid %d: its thread %d waits for something that another of its threads "
		                                "holds; it goes on, and the library comes when it can", (int)loan->target->pid,
		                   (int)loan->tracee.thread);
	return result;
}

/* To the next system call's begin, and to its end. */
static int step_through_call(struct loan *loan)
{
	int result = expect_stop(loan, tracee_step(&loan->tracee));

	return result == 0 ? expect_stop(loan, tracee_step(&loan->tracee)) : result;
}

/* Makes the thread make a system call, and stops behind it. From the first one on it has something to come back from:
 * only then signals are kept from it. -1 with the reason where the thread is gone; the call's own errors are its
 * result. */
static int call(struct loan *loan, long number, const uint64_t arguments[6], int64_t *result)
{
	const uint64_t all = UINT64_MAX;
	pid_t thread = loan->tracee.thread;
	uint64_t instruction;
	long called;

	if (machine_set_call(thread, &loan->state, &loan->target->places, loan->frame, number, arguments) < 0 ||
	    ptrace(PTRACE_SETSIGMASK, thread, sizeof all, &all) < 0)
		return expect_stop(loan, TRACEE_GONE);
	if (step_through_call(loan) < 0)
		return -1;
	return machine_look(thread, &instruction, &called, result) < 0 ? expect_stop(loan, TRACEE_GONE) : 0;
}

/* --- giving it back ----------------------------------------------------------------------------------------------------- */

/* Where the kernel decides about interrupted calls, everything is as it was before; then it goes on. Should it not stop
 * there, it goes back by itself. */
static void give_back(struct loan *loan)
{
	if (machine_interrupted_call(&loan->state) >= 0 && threads_may_repeat(machine_interrupted_call(&loan->state)))
		machine_restart_call(&loan->state);
	if (loan->frame)
		tracee_interrupt(&loan->tracee);
	if (loan->is_saved && loan->tracee.is_stopped)
		machine_restore(loan->tracee.thread, &loan->state);
	tracee_release(&loan->tracee);
}

/* Lets it go as it is, on its way back or waiting for a lock. */
static void leave(struct loan *loan)
{
	if (!loan->tracee.is_stopped)
		tracee_interrupt(&loan->tracee);
	tracee_release(&loan->tracee);
}

/* --- the library's file ---------------------------------------------------------------------------------------------------- */

static int copy(int from, int to)
{
	static char buffer[1 << 16];
	ssize_t got;

	while ((got = read(from, buffer, sizeof buffer)) > 0) {
		for (ssize_t put = 0, part; put < got; put += part) {
			part = write(to, buffer + put, (size_t)(got - put));
			if (part <= 0)
				return -1;
		}
	}
	return got < 0 ? -1 : 0;
}

/* Fills the thread's descriptor, which is a file in memory. */
static int fill_file(const struct loan *loan, int file, const char *path)
{
	char target[96];
	int result = -1;

	snprintf(target, sizeof target, "/proc/%d/task/%d/fd/%d", (int)loan->target->pid, (int)loan->tracee.thread, file);
	int from = open(path, O_RDONLY | O_CLOEXEC);

	if (from < 0)
		return error_set_errno(loan->error, "%.200s", path);
	int to = open(target, O_WRONLY | O_CLOEXEC);

	if (to >= 0)
		result = copy(from, to);
	if (result < 0)
		target_explain(loan->target->pid, errno, loan->error);
	if (to >= 0)
		close(to);
	close(from);
	return result;
}

/* Not every kernel knows the flag, nor needs it. */
static unsigned int file_flags(void)
{
	int file = memfd_create(LIBRARY_NAME, MFD_CLOEXEC | MFD_EXEC);

	if (file >= 0)
		close(file);
	return file >= 0 ? MFD_CLOEXEC | MFD_EXEC : MFD_CLOEXEC;
}

/* --- loading ---------------------------------------------------------------------------------------------------------- */

/* Memory, with the strings in it, and room for the code. Its address, or 0 with the reason. */
static uint64_t get_memory(struct loan *loan)
{
	const uint64_t arguments[6] = {
		0, MEMORY_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, UINT64_MAX, 0};
	struct strings strings = {.entry = ATTACH_ENTRY, .name = LIBRARY_NAME};
	int64_t memory = 0;

	if (call(loan, SYS_mmap, arguments, &memory) < 0)
		return 0;
	if (memory < 0 && memory > -PAGE) {
		fail(loan, "no memory for the library", memory);
		return 0;
	}
	if (!memory_write(&loan->target->memory, (uint64_t)memory + STRINGS_AT, &strings, sizeof strings)) {
		expect_stop(loan, TRACEE_GONE);
		return 0;
	}
	return (uint64_t)memory;
}

static int put_code(struct loan *loan, uint64_t memory)
{
	const uint64_t arguments[6] = {
		memory, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, UINT64_MAX, 0};
	size_t size = (size_t)(machine_code_end - machine_code);
	int64_t result = 0;

	if (call(loan, SYS_mmap, arguments, &result) < 0)
		return -1;
	if (result < 0 && result > -PAGE)
		return fail(loan, "may not run new code", result);
	for (size_t i = 0; i < size; i += sizeof(long)) {
		long word = 0;

		memcpy(&word, machine_code + i, size - i < sizeof word ? size - i : sizeof word);
		if (ptrace(PTRACE_POKETEXT, loan->tracee.thread, memory + i, word) < 0)
			return expect_stop(loan, TRACEE_GONE);
	}
	return 0;
}

/* The descriptor of the library's file, or -1 with the reason. */
static int make_file(struct loan *loan, uint64_t memory, const char *path)
{
	const uint64_t arguments[6] = {STRING_AT(memory, name), file_flags()};
	char text[sizeof((struct strings *)0)->path];
	int64_t file = -1;

	if (call(loan, SYS_memfd_create, arguments, &file) < 0)
		return -1;
	if (file < 0)
		return fail(loan, "no file in memory for the library", file);
	/* A spelling that no program has of its own: the dynamic linker knows libraries by their paths. */
	snprintf(text, sizeof text, "/proc/thread-self/./fd/%d", (int)file);
	if (!memory_write(&loan->target->memory, STRING_AT(memory, path), text, sizeof text))
		return expect_stop(loan, TRACEE_GONE);
	return fill_file(loan, (int)file, path) == 0 ? (int)file : -1;
}

/* On the way to failure: what was made is undone. The thread may be gone, which does not matter any more. */
static void undo(struct loan *loan, uint64_t memory, int file)
{
	struct loan quiet = *loan;
	int64_t ignored;

	quiet.error = NULL;
	if (file >= 0)
		call(&quiet, SYS_close, (const uint64_t[6]){(uint64_t)file}, &ignored);
	if (memory)
		call(&quiet, SYS_munmap, (const uint64_t[6]){memory, MEMORY_SIZE}, &ignored);
	loan->tracee = quiet.tracee;
}

static struct machine_request request_for(const struct loan *loan, uint64_t memory, int file)
{
	const struct target *target = loan->target;

	return (struct machine_request){
		.errno_location = target->errno_location,
		.open_library = target->open_library,
		.find_symbol = target->find_symbol,
		.last_error = target->last_error,
		.close_library = target->close_library,
		.path = STRING_AT(memory, path),
		.entry = STRING_AT(memory, entry),
		.file = (uint64_t)file,
		.memory = memory,
		.memory_size = MEMORY_SIZE,
		.call = target->places.call,
		.frame = loan->frame,
	};
}

/* Steps from system call to system call until the end of one made in such a range. */
static int run_to(struct loan *loan, const struct range *range, long number)
{
	uint64_t instruction = 0;
	long called = -1;
	int64_t result;

	while (!(range_has(range, instruction) && called == number)) {
		if (step_through_call(loan) < 0)
			return -1;
		if (machine_look(loan->tracee.thread, &instruction, &called, &result) < 0)
			return expect_stop(loan, TRACEE_GONE);
	}
	return 0;
}

/* What the library, or the dynamic linker, has against it. */
static int read_refusal(const struct loan *loan, uint64_t memory)
{
	struct machine_request request;
	char text[ERROR_MAX];

	if (!memory_read(&loan->target->memory, memory + REQUEST_AT, &request, sizeof request))
		return expect_stop(loan, TRACEE_GONE);
	if (!request.refusal && request.library)
		return 0;
	memory_read_text(&loan->target->memory, request.refusal, text, sizeof text);
	return error_set(loan->error, "pid %d: %.280s", (int)loan->target->pid, text);
}

/* From here on the thread needs us no more: it loads, cleans up and goes back. */
static int run_code(struct loan *loan, uint64_t memory, int file)
{
	struct machine_request request = request_for(loan, memory, file);
	const struct range code = {memory, memory + PAGE};
	const struct range places = {loan->target->places.call, loan->target->places.call + 4};
	struct error ended;

	if (!memory_write(&loan->target->memory, memory + REQUEST_AT, &request, sizeof request) ||
	    machine_set_code(loan->tracee.thread, &loan->state, memory, memory + REQUEST_AT, memory + MEMORY_SIZE) < 0)
		return expect_stop(loan, TRACEE_GONE);
	if (run_to(loan, &code, SYS_close) < 0)
		return -1;
	int result = read_refusal(loan, memory);
	struct error *error = loan->error;

	loan->error = &ended;
	if (run_to(loan, &places, SYS_munmap) < 0 && result == 0) {
		result = -1;
		if (error)
			*error = ended;
	}
	loan->error = error;
	return result;
}

static int load(struct loan *loan, const char *path)
{
	uint64_t memory = get_memory(loan);
	int file = -1, result = -1;

	if (memory && put_code(loan, memory) == 0)
		file = make_file(loan, memory, path);
	if (file >= 0)
		result = run_code(loan, memory, file);
	else if (memory)
		undo(loan, memory, file);
	return result;
}

/* --- choosing a thread ------------------------------------------------------------------------------------------------------ */

static enum outcome use(struct loan *loan, const char *path)
{
	const struct target *target = loan->target;
	pid_t thread = loan->tracee.thread;
	enum outcome outcome = OUTCOME_ELSEWHERE;

	loan->is_saved = machine_save(thread, &loan->state) == 0;
	if (loan->is_saved && threads_may_borrow(target, thread, &loan->state))
		loan->frame = machine_put_frame(&loan->state, &target->places, &target->memory);
	if (loan->frame)
		outcome = load(loan, path) == 0 ? OUTCOME_DONE : OUTCOME_FAILED;
	if (loan->tracee.is_stopped)
		give_back(loan);
	else
		leave(loan);
	return outcome;
}

static enum outcome borrow(const struct target *target, pid_t thread, const char *path, struct attach_report *report,
                           struct error *error)
{
	static struct loan loan; /* large */
	enum outcome outcome = OUTCOME_ELSEWHERE;

	loan = (struct loan){.target = target, .error = error};
	if (tracee_seize(&loan.tracee, thread, target->unfiltered) < 0) {
		/* A thread that has ended is none of many. */
		if (errno != ESRCH) {
			target_explain(target->pid, errno, error);
			outcome = OUTCOME_FAILED;
		}
		return outcome;
	}
	double start = now();

	report->tries++;
	if (tracee_interrupt(&loan.tracee) == TRACEE_STOPPED)
		outcome = use(&loan, path);
	else
		leave(&loan);
	report->thread = thread;
	report->seconds = now() - start;
	return outcome;
}

/* Every thread that may do, once. */
static enum outcome look_around(pid_t pid, const char *path, struct attach_report *report, struct error *error)
{
	static struct target target;
	enum outcome outcome = OUTCOME_ELSEWHERE;
	pid_t *threads;

	if (target_open(&target, pid, error) < 0)
		return OUTCOME_FAILED;
	size_t count = threads_choose(&target, &threads);

	for (size_t i = 0; i < count && outcome == OUTCOME_ELSEWHERE; i++)
		outcome = borrow(&target, threads[i], path, report, error);
	free(threads);
	target_close(&target);
	return outcome;
}

static int try_for_a_while(pid_t pid, const char *path, struct attach_report *report, struct error *error)
{
	enum outcome outcome = OUTCOME_ELSEWHERE;

	for (int round = 0; round < ROUNDS && outcome == OUTCOME_ELSEWHERE; round++) {
		if (round > 0)
			pause_for(ROUND_NS);
		outcome = look_around(pid, path, report, error);
	}
	if (outcome == OUTCOME_ELSEWHERE)
		error_set(error, "pid %d: none of its threads could be borrowed in %d tries: each was in the middle of "
		                 "something; try again", (int)pid, (int)report->tries);
	return outcome == OUTCOME_DONE ? 0 : -1;
}

/* --- one at a time ---------------------------------------------------------------------------------------------------------- */

/* Its directory in /proc serves as a lock, which goes with its holder. -1 with the reason. */
static int lock_process(pid_t pid, struct error *error)
{
	char path[32];

	snprintf(path, sizeof path, "/proc/%d", (int)pid);
	int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (directory < 0)
		return target_explain(pid, errno, error);
	int locked = flock(directory, LOCK_EX | LOCK_NB);

	for (int waited = 0; locked < 0 && errno == EWOULDBLOCK && waited < LOCK_WAIT_MS; waited++) {
		pause_for(1000000);
		locked = flock(directory, LOCK_EX | LOCK_NB);
	}
	if (locked < 0) {
		error_set_errno(error, "pid %d: somebody else is attaching to it", (int)pid);
		close(directory);
		directory = -1;
	}
	return directory;
}

static bool has_segment(pid_t pid)
{
	struct segment segment;
	bool found = segment_open(&segment, pid, NULL) == SEGMENT_FOUND;

	segment_close(&segment);
	return found;
}

int attach_load(pid_t pid, const char *path, struct attach_report *report, struct error *error)
{
	int lock = lock_process(pid, error), result = 0;

	*report = (struct attach_report){.tries = 0};
	if (lock < 0)
		return -1;
	if (!has_segment(pid))
		result = try_for_a_while(pid, path, report, error);
	close(lock);
	return result;
}
