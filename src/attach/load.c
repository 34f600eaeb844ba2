#include "load.h"

#include "attach/attach.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U /* Linux 6.3 */
#endif

#define LIBRARY_NAME "nvtaskset-library"
#define LIBRARY_MAX (64 << 20)

/* --- the file ------------------------------------------------------------------------------------------------------ */

static int read_content(struct library *library, int file)
{
	struct stat status;

	if (fstat(file, &status) < 0)
		return -1;
	library->size = (size_t)status.st_size;
	if (!S_ISREG(status.st_mode) || library->size == 0 || library->size > LIBRARY_MAX) {
		errno = ENOEXEC;
		return -1;
	}
	library->content = malloc(library->size);
	if (library->content && pread(file, library->content, library->size, 0) == (ssize_t)library->size)
		return 0;
	free(library->content);
	return -1;
}

int library_read(struct library *library, const char *path, struct error *error)
{
	int file = open(path, O_RDONLY | O_CLOEXEC), result = -1;

	if (file >= 0) {
		result = read_content(library, file);
		close(file);
	}
	return result < 0 ? error_set_errno(error, "%.200s", path) : 0;
}

/* --- what the thread works in -------------------------------------------------------------------------------------- */

/*
 * Its memory:
 *
 *   0                    the loading code, which can be run and not written
 *   PAGE                 the request, and strings for it
 *   2 * PAGE to `told`   the library, while it is copied to its file; then the stack
 *   `told` to the end    what the library is told
 */
#define PAGE 4096
#define STACK_MIN (256 * 1024)

/* How long it waits for us when it has finished: longer than we may be without a processor, most of the time. */
#define PATIENCE_S 1

struct strings {
	char path[64], entry[64], name[64];
};

#define REQUEST_AT PAGE
#define STRINGS_AT (PAGE + sizeof(struct machine_request))
#define REST_AT (2 * PAGE)

_Static_assert(STRINGS_AT + sizeof(struct strings) <= REST_AT, "one page");

#define STRING_AT(work, which) ((work)->memory + STRINGS_AT + offsetof(struct strings, which))

struct work {
	struct loan *loan;
	uint64_t memory; /* 0: none */
	uint64_t told;   /* where in it */
	uint64_t size;
	int64_t file; /* -1: none */
};

static const struct memory *memory_of(const struct work *work)
{
	return &work->loan->target->memory;
}

static bool is_error(int64_t result)
{
	return result < 0 && result > -PAGE;
}

static int fail(const struct work *work, const char *what, int64_t result)
{
	errno = (int)-result;
	return error_set_errno(work->loan->error, "pid %d: %s", (int)work->loan->target->pid, what);
}

/* A system call that is expected to succeed. -1 with the reason, of which `what` is a part. */
static int64_t call(const struct work *work, const char *what, long number, const uint64_t arguments[6])
{
	int64_t result = -1;

	if (loan_call(work->loan, number, arguments, &result) == 0 && is_error(result))
		result = fail(work, what, result);
	return result;
}

static int get_memory(struct work *work, const char *told)
{
	const uint64_t arguments[6] = {
		0, work->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, UINT64_MAX, 0};
	struct strings strings = {.entry = ATTACH_ENTRY, .name = LIBRARY_NAME};
	int64_t memory = call(work, "no memory for the library", SYS_mmap, arguments);

	if (is_error(memory))
		return -1;
	work->memory = (uint64_t)memory;
	return memory_write(memory_of(work), work->memory + STRINGS_AT, &strings, sizeof strings) &&
	                       memory_write(memory_of(work), work->memory + work->told, told, strlen(told) + 1)
	               ? 0
	               : loan_lost(work->loan);
}

static int put_code(const struct work *work)
{
	const uint64_t arguments[6] = {
		work->memory, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, UINT64_MAX, 0};

	if (is_error(call(work, "may not run new code", SYS_mmap, arguments)))
		return -1;
	for (size_t i = 0; i < machine_code_size; i += sizeof(long)) {
		size_t rest = machine_code_size - i;
		long word = 0;

		memcpy(&word, machine_code + i, rest < sizeof word ? rest : sizeof word);
		if (ptrace(PTRACE_POKETEXT, work->loan->tracee.thread, work->memory + i, word) < 0)
			return loan_lost(work->loan);
	}
	return 0;
}

/* Not every kernel knows the flag, nor needs it. */
static unsigned int file_flags(void)
{
	int file = memfd_create(LIBRARY_NAME, MFD_CLOEXEC | MFD_EXEC);

	if (file >= 0)
		close(file);
	return file >= 0 ? MFD_CLOEXEC | MFD_EXEC : MFD_CLOEXEC;
}

static int make_file(struct work *work)
{
	const uint64_t arguments[6] = {STRING_AT(work, name), file_flags()};
	char path[sizeof((struct strings *)0)->path];

	work->file = call(work, "no file in memory for the library", SYS_memfd_create, arguments);
	if (work->file < 0)
		return -1;
	/* A spelling that no program has of its own: the dynamic linker knows libraries by their paths. */
	snprintf(path, sizeof path, "/proc/thread-self/./fd/%d", (int)work->file);
	return memory_write(memory_of(work), STRING_AT(work, path), path, sizeof path) ? 0 : loan_lost(work->loan);
}

/* Written by the thread itself: the process may have put another file in the descriptor's place, one that it cannot
 * write to, and we can. */
static int fill_file(const struct work *work, const struct library *library)
{
	int64_t written = 1;

	if (!memory_write(memory_of(work), work->memory + REST_AT, library->content, library->size))
		return loan_lost(work->loan);
	for (size_t done = 0; done < library->size && written > 0; done += (size_t)written)
		written = call(work, "the library cannot be copied", SYS_write,
		               (const uint64_t[6]){(uint64_t)work->file, work->memory + REST_AT + done,
		                                   library->size - done});
	return written > 0 ? 0 : -1;
}

/* The thread may be gone, which does not matter then. */
static void give_up(struct work *work)
{
	struct error *error = work->loan->error;

	work->loan->error = NULL;
	if (work->file >= 0)
		call(work, "", SYS_close, (const uint64_t[6]){(uint64_t)work->file});
	if (work->memory)
		call(work, "", SYS_munmap, (const uint64_t[6]){work->memory, work->size});
	work->loan->error = error;
}

/* --- loading ------------------------------------------------------------------------------------------------------- */

static struct machine_request request_for(const struct work *work)
{
	const struct target *target = work->loan->target;

	return (struct machine_request){
		.errno_location = target->errno_location,
		.open_library = target->open_library,
		.find_symbol = target->find_symbol,
		.last_error = target->last_error,
		.close_library = target->close_library,
		.path = STRING_AT(work, path),
		.entry = STRING_AT(work, entry),
		.told = work->memory + work->told,
		.file = (uint64_t)work->file,
		.patience_s = PATIENCE_S,
		.memory = work->memory,
		.memory_size = work->size,
		.call = target->places.call,
		.frame = work->loan->frame,
	};
}

/* What the library, or the dynamic linker, has against it. */
static int read_refusal(const struct work *work, bool is_back)
{
	struct machine_request request;
	char text[MACHINE_TEXT];

	if (!memory_read(memory_of(work), work->memory + REQUEST_AT, &request, sizeof request))
		return is_back ? LIBRARY_UNSEEN : loan_lost(work->loan);
	if (request.library && !request.refusal)
		return 0;
	memory_read_text(memory_of(work), work->memory + REQUEST_AT + offsetof(struct machine_request, text), text,
	                 sizeof text);
	return error_set(work->loan->error, "pid %d: %s", (int)work->loan->target->pid, text);
}

/* Once it runs, the thread needs us no more: where nobody comes, it gives all up itself, and goes back. */
static int run_code(struct work *work)
{
	const struct machine_request request = request_for(work);
	const uint64_t memory = work->memory, request_at = memory + REQUEST_AT;
	const struct range code = {memory, memory + PAGE};
	bool is_back = false;

	if (!memory_write(memory_of(work), request_at, &request, sizeof request))
		return loan_lost(work->loan);
	if (loan_set_code(work->loan, memory, request_at, memory + work->told) < 0 ||
	    loan_run(work->loan, request_at + offsetof(struct machine_request, finished), &code, &is_back) < 0)
		return -1;
	int result = read_refusal(work, is_back);

	if (!is_back)
		give_up(work);
	return result;
}

static uint64_t whole_pages(uint64_t size)
{
	return (size + PAGE - 1) / PAGE * PAGE;
}

int library_load(const struct library *library, struct loan *loan)
{
	uint64_t told = REST_AT + whole_pages(library->size > STACK_MIN ? library->size : STACK_MIN);
	struct work work = {
		.loan = loan, .told = told, .size = told + whole_pages(strlen(library->told) + 1), .file = -1};
	int result = -1;

	if (get_memory(&work, library->told) == 0 && put_code(&work) == 0 && make_file(&work) == 0 &&
	    fill_file(&work, library) == 0)
		result = run_code(&work);
	else
		give_up(&work);
	return result;
}
