#include "tasks.h"

#include "attach/entry.h"
#include "base/proc.h"
#include "state/handle.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U /* Linux 6.3 */
#endif

#define LIBRARY_NAME "nvtaskset-library"
#define LIBRARY_MAX (64 << 20)

/* --- the file ----------------------------------------------------------------------------------------------------- */

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

/* The part of the file that the dynamic linker maps. Without debug information, a quarter of the file. */
static size_t loaded_size(const struct library *library)
{
	const Elf64_Ehdr *header = (const Elf64_Ehdr *)(const void *)library->content;
	size_t loaded = sizeof *header;

	if (library->size < sizeof *header || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
	    header->e_phoff > library->size || header->e_phoff % sizeof(uint64_t) != 0 ||
	    header->e_phnum > (library->size - header->e_phoff) / sizeof(Elf64_Phdr))
		return library->size;
	const Elf64_Phdr *headers = (const Elf64_Phdr *)(const void *)(library->content + header->e_phoff);

	for (int i = 0; i < header->e_phnum; i++) {
		if (headers[i].p_offset + headers[i].p_filesz > loaded)
			loaded = headers[i].p_offset + headers[i].p_filesz;
	}
	return loaded < library->size ? loaded : library->size;
}

int attach_read_library(struct library *library, const char *path, struct error *error)
{
	int file = open(path, O_RDONLY | O_CLOEXEC), result = -1;

	if (file >= 0) {
		result = read_content(library, file);
		close(file);
	}
	if (result == 0)
		library->size = loaded_size(library);
	return result < 0 ? error_set_errno(error, "%.200s", path) : 0;
}

/* --- the thread's room -------------------------------------------------------------------------------------------- */

/*
 * Layout of the room:
 *
 *   0                        the request, with its strings
 *   REST_AT to `argument`    the library, while copied to a file; then the stack
 *   `argument` to the end    the argument of the library's entry
 */
#define REST_AT 4096
#define STACK_MIN (256 * 1024)
#define ALIGNMENT 64

/* The lowest number for the library's file (state/handle.h). */
#define FILE_USUAL 200

/* How long the finished thread waits for us: longer than we are usually without a processor. */
#define PATIENCE_S 1

/* A spelling that no program uses: the dynamic linker knows libraries by path. The number replaces the last slashes. */
#define LIBRARY_DIRECTORY "/proc/thread-self/./fd/"
#define LIBRARY_PATH LIBRARY_DIRECTORY "/////////"

struct strings {
	char path[sizeof LIBRARY_PATH], entry[sizeof ATTACH_ENTRY], name[sizeof LIBRARY_NAME];
};

static const struct strings strings = {LIBRARY_PATH, ATTACH_ENTRY, LIBRARY_NAME};

#define STRINGS_AT sizeof(struct machine_request)

_Static_assert(STRINGS_AT + sizeof(struct strings) <= REST_AT, "one page");

#define STRING_AT(borrowed, which) ((borrowed)->room + STRINGS_AT + offsetof(struct strings, which))

static size_t argument_at(const struct library *library)
{
	size_t size = library->size > STACK_MIN ? library->size : STACK_MIN;

	return REST_AT + (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

size_t attach_library_room(const struct library *library)
{
	return argument_at(library) + strlen(library->argument) + 1;
}

/* Older kernels do not know MFD_EXEC, and do not need the flag. */
static unsigned int file_flags(void)
{
	int file = memfd_create(LIBRARY_NAME, MFD_CLOEXEC | MFD_EXEC);

	if (file >= 0)
		close(file);
	return file >= 0 ? MFD_CLOEXEC | MFD_EXEC : MFD_CLOEXEC;
}

/* --- loading ------------------------------------------------------------------------------------------------------ */

static struct machine_request request_for(const struct library *library, const struct borrowed_thread *borrowed)
{
	const struct target *target = borrowed->target;

	return (struct machine_request){
		.errno_location = target->errno_location,
		.open_library = target->open_library,
		.find_symbol = target->find_symbol,
		.last_error = target->last_error,
		.close_library = target->close_library,
		.name = STRING_AT(borrowed, name),
		.path = STRING_AT(borrowed, path),
		.path_last = STRING_AT(borrowed, path) + sizeof LIBRARY_PATH - 2,
		.entry = STRING_AT(borrowed, entry),
		.argument = borrowed->room + argument_at(library),
		.file_flags = file_flags(),
		.file_min = (uint64_t)handle_lowest_descriptor(proc_status(target->pid, "FDSize:", 0), FILE_USUAL),
		.content = borrowed->room + REST_AT,
		.content_size = library->size,
		.patience_s = PATIENCE_S,
	};
}

/* The dynamic linker's messages begin with the library's path. */
static const char *without_path(const char *text)
{
	const char *colon =
	    strncmp(text, LIBRARY_DIRECTORY, strlen(LIBRARY_DIRECTORY)) == 0 ? strstr(text, ": ") : NULL;

	return colon ? colon + 2 : text;
}

/* Reads the result: 0: loaded; LIBRARY_UNSEEN; -1 with the reason of the kernel, the dynamic linker or the library. */
static int read_refusal(const struct borrowed_thread *borrowed, bool is_back)
{
	const struct memory *memory = &borrowed->target->memory;
	struct machine_request request;
	char text[MACHINE_TEXT];

	if (!memory_read(memory, borrowed->room, &request, sizeof request))
		return is_back ? LIBRARY_UNSEEN : borrowed_lost(borrowed);
	if (request.failed < 0) {
		errno = (int)-request.failed;
		return error_set_errno(borrowed->error, "pid %d: no file in memory for the library",
		                       (int)borrowed->target->pid);
	}
	if (request.library && !request.refusal)
		return 0;
	memory_read_text(memory, borrowed->room + offsetof(struct machine_request, text), text, sizeof text);
	return error_set(borrowed->error, "pid %d: %s", (int)borrowed->target->pid, without_path(text));
}

/* The thread itself writes the content to a file in memory, with its own rights, and does not need us afterwards. */
int attach_load_library(const struct library *library, struct borrowed_thread *borrowed)
{
	const struct machine_request request = request_for(library, borrowed);
	bool is_back = false;

	if (borrowed_write(borrowed, 0, &request, sizeof request) < 0 ||
	    borrowed_write(borrowed, STRINGS_AT, &strings, sizeof strings) < 0 ||
	    borrowed_write(borrowed, REST_AT, library->content, library->size) < 0 ||
	    borrowed_write(borrowed, argument_at(library), library->argument, strlen(library->argument) + 1) < 0 ||
	    borrowed_load(borrowed, argument_at(library), offsetof(struct machine_request, finished), &is_back) < 0)
		return -1;
	return read_refusal(borrowed, is_back);
}
