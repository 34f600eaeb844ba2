#include "memory.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAPS_MAX ((size_t)64 << 20) /* some 500 000 mappings; the kernel's default limit is 65 530 */

/* --- the map -------------------------------------------------------------------------------------------------- */

/* Reads the whole file, ended by NUL; unused room costs nothing. NULL with errno. */
static char *read_all(int file)
{
	char *text = malloc(MAPS_MAX + 1);
	size_t length = 0;
	ssize_t got = 1;

	for (; text && got > 0 && length < MAPS_MAX; length += got > 0 ? (size_t)got : 0)
		got = read(file, text + length, MAPS_MAX - length);
	if (text && got < 0) {
		free(text);
		text = NULL;
	}
	if (text)
		text[length] = '\0';
	return text;
}

static size_t count_lines(const char *text)
{
	size_t lines = 0;

	for (; *text; text++)
		lines += *text == '\n';
	return lines;
}

static int parse_map(struct memory *memory)
{
	size_t lines = count_lines(memory->text);
	char *rest = memory->text, *line;

	memory->mappings = malloc((lines + 1) * sizeof *memory->mappings);
	if (!memory->mappings)
		return -1;
	while (memory->count < lines && (line = strsep(&rest, "\n"))) {
		if (proc_mapping_parse(&memory->mappings[memory->count], line))
			memory->count++;
	}
	return 0;
}

static int read_map(struct memory *memory, pid_t pid)
{
	int file = proc_open(pid, "maps", O_RDONLY), result = -1;

	if (file >= 0) {
		memory->text = read_all(file);
		result = memory->text ? parse_map(memory) : -1;
		close(file);
	}
	return result;
}

int memory_open(struct memory *memory, pid_t pid)
{
	*memory = (struct memory){.file = proc_open(pid, "mem", O_RDWR)};
	if (memory->file < 0 || read_map(memory, pid) < 0) {
		int saved = errno;

		memory_close(memory);
		errno = saved;
		return -1;
	}
	return 0;
}

void memory_close(struct memory *memory)
{
	if (memory->file >= 0)
		close(memory->file);
	free(memory->mappings);
	free(memory->text);
	*memory = (struct memory){.file = -1};
}

const struct mapping *memory_find(const struct memory *memory, uint64_t address)
{
	const struct mapping *found = NULL;

	for (size_t i = 0; i < memory->count && !found; i++) {
		if (proc_mapping_has(&memory->mappings[i], address))
			found = &memory->mappings[i];
	}
	return found;
}

/* --- content ------------------------------------------------------------------------------------------------------ */

bool memory_read(const struct memory *memory, uint64_t address, void *to, size_t length)
{
	return pread(memory->file, to, length, (off_t)address) == (ssize_t)length;
}

bool memory_write(const struct memory *memory, uint64_t address, const void *from, size_t length)
{
	return pwrite(memory->file, from, length, (off_t)address) == (ssize_t)length;
}

void memory_read_text(const struct memory *memory, uint64_t address, char *to, size_t room)
{
	ssize_t got = pread(memory->file, to, room - 1, (off_t)address);

	to[got > 0 ? got : 0] = '\0';
	for (; *to; to++)
		*to = isprint((unsigned char)*to) ? *to : '?';
}
