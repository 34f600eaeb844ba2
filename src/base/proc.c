#include "proc.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_ROOM 512

bool proc_is_limit(int code)
{
	return code == EMFILE || code == ENFILE || code == ENOMEM;
}

/* --- whole files -------------------------------------------------------------------------------------------------- */

static bool format_path(char path[PATH_ROOM], const char *format, va_list arguments)
{
	bool fits = vsnprintf(path, PATH_ROOM, format, arguments) < PATH_ROOM;

	if (!fits)
		errno = ENAMETOOLONG;
	return fits;
}

static ssize_t read_start(void *bytes, size_t room, const char *format, va_list arguments)
{
	char path[PATH_ROOM];
	int file = format_path(path, format, arguments) ? open(path, O_RDONLY | O_CLOEXEC) : -1;

	if (file < 0)
		return -1;
	ssize_t length = read(file, bytes, room);
	int saved = errno;

	close(file);
	errno = saved;
	return length;
}

ssize_t proc_read(void *bytes, size_t room, const char *path, ...)
{
	va_list arguments;

	va_start(arguments, path);
	ssize_t length = read_start(bytes, room, path, arguments);

	va_end(arguments);
	return length;
}

ssize_t proc_read_text(char *text, size_t room, const char *path, ...)
{
	va_list arguments;

	va_start(arguments, path);
	ssize_t length = read_start(text, room - 1, path, arguments);

	va_end(arguments);
	text[length > 0 ? length : 0] = '\0';
	return length;
}

bool proc_read_link(char *text, size_t room, const char *path, ...)
{
	char link[PATH_ROOM];
	va_list arguments;

	va_start(arguments, path);
	ssize_t length = format_path(link, path, arguments) ? readlink(link, text, room - 1) : -1;

	va_end(arguments);
	text[length > 0 ? length : 0] = '\0';
	return length > 0;
}

/* --- files of a process ------------------------------------------------------------------------------------------- */

bool proc_has_program(pid_t thread)
{
	char program[2];

	return proc_read_link(program, sizeof program, "/proc/%d/exe", (int)thread) || errno != ENOENT;
}

/* The entry of an ended first thread stays; of another ended thread, only while a debugger holds the entry. */
static pid_t find_thread(pid_t pid)
{
	_Alignas(struct dirent64) char entries[1024];
	char path[32];
	pid_t found = pid;

	snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
	int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ssize_t length = directory >= 0 ? getdents64(directory, entries, sizeof entries) : 0;
	const struct dirent64 *entry;

	for (ssize_t at = 0; at < length && found == pid; at += entry->d_reclen) {
		entry = (const struct dirent64 *)(entries + at);
		pid_t thread = (pid_t)strtol(entry->d_name, NULL, 10);

		if (thread > 0 && proc_has_program(thread))
			found = thread;
	}
	if (directory >= 0)
		close(directory);
	return found;
}

pid_t proc_thread(pid_t pid)
{
	return proc_has_program(pid) ? pid : find_thread(pid);
}

static int open_of(pid_t thread, const char *name, int flags)
{
	char path[64];

	if (thread != 0)
		snprintf(path, sizeof path, "/proc/%d/%s", (int)thread, name);
	else
		snprintf(path, sizeof path, "/proc/self/%s", name);
	return open(path, flags | O_CLOEXEC);
}

int proc_open(pid_t pid, const char *name, int flags)
{
	return open_of(pid != 0 ? proc_thread(pid) : 0, name, flags);
}

FILE *proc_stream(pid_t pid, const char *name)
{
	int file = proc_open(pid, name, O_RDONLY);
	FILE *stream = file >= 0 ? fdopen(file, "r") : NULL;

	if (file >= 0 && !stream)
		close(file);
	return stream;
}

/* Copies the line from `at` on, of `length` bytes. */
static void copy_line(char *behind, size_t room, const char *at, size_t length)
{
	const char *end = memchr(at, '\n', length);
	size_t copied = end ? (size_t)(end - at) : length;

	copied = copied < room ? copied : room - 1;
	memcpy(behind, at, copied);
	behind[copied] = '\0';
}

/* Closes the file; -1: finds nothing. */
static bool find_in(int file, size_t *most, const char *text, char *behind, size_t room)
{
	char part[4096], *found = NULL;
	size_t length = strlen(text), kept = 0, all = SIZE_MAX, *left = most ? most : &all;
	ssize_t came;

	while (file >= 0 && !found && *left > 0 && (came = read(file, part + kept, sizeof part - kept)) > 0) {
		size_t here = kept + (size_t)came;

		found = memmem(part, here, text, length);
		/* The text may lie across two parts, and the rest of the line too. */
		kept = found ? (size_t)(part + here - found) : here < length ? here : length - 1;
		memmove(part, part + here - kept, kept);
		*left -= (size_t)came < *left ? (size_t)came : *left;
	}
	if (behind && found && !memchr(part + length, '\n', kept - length) &&
	     (came = read(file, part + kept, sizeof part - kept)) > 0)
		kept += (size_t)came;
	if (behind)
		copy_line(behind, room, part + length, found ? kept - length : 0);
	if (file >= 0)
		close(file);
	return found != NULL;
}

bool proc_find(pid_t pid, const char *name, size_t *most, const char *text, char *behind, size_t room)
{
	return find_in(proc_open(pid, name, O_RDONLY), most, text, behind, room);
}

const char *proc_variable(const char *environment, size_t length, const char *name)
{
	size_t size = strlen(name);
	const char *value = NULL;

	for (const char *at = environment; at < environment + length && !value; at += strlen(at) + 1)
		value = strncmp(at, name, size) == 0 && at[size] == '=' ? at + size + 1 : NULL;
	return value;
}

bool proc_owner(pid_t pid, uid_t *owner)
{
	char path[32];
	struct stat status;

	snprintf(path, sizeof path, "/proc/%d", (int)pid);
	bool found = stat(path, &status) == 0;

	*owner = found ? status.st_uid : 0;
	return found;
}

/* --- status ------------------------------------------------------------------------------------------------------- */

/* For the text behind a field: a number for each PID namespace, at most 32. An earlier line can be long (groups). */
#define LINE_ROOM 512

static void find_field(pid_t pid, const char *field, char line[LINE_ROOM])
{
	char start[64];

	snprintf(start, sizeof start, "\n%s", field);
	find_in(open_of(pid, "status", O_RDONLY), NULL, start, line, LINE_ROOM);
}

uint64_t proc_status(pid_t pid, const char *field, uint64_t unknown)
{
	char line[LINE_ROOM], *at = line;
	uint64_t number = unknown;

	find_field(pid, field, line);
	while (*at) {
		if (isdigit((unsigned char)*at))
			number = strtoull(at, &at, 10);
		else
			at++;
	}
	return number;
}

bool proc_status_has(pid_t pid, const char *field, const char *text)
{
	char line[LINE_ROOM];

	find_field(pid, field, line);
	return strstr(line, text) != NULL;
}

/* --- stat --------------------------------------------------------------------------------------------------------- */

enum {
	STAT_STATE = 3,
	STAT_PARENT = 4,
	STAT_THREADS = 20
};

void proc_stat_read(pid_t pid, char text[PROC_STAT_TEXT])
{
	proc_read_text(text, PROC_STAT_TEXT, "/proc/%d/stat", (int)pid);
}

/* The blank in front of a field; NULL without the field. */
static const char *blank_before(const char *text, int number)
{
	const char *at = strrchr(text, ')');

	for (int field = 2; at && field < number; field++)
		at = strchr(at + 1, ' ');
	return at;
}

char proc_stat_state(const char *text)
{
	const char *at = blank_before(text, STAT_STATE);

	return at ? at[1] : '\0';
}

uint64_t proc_stat_field(const char *text, int number)
{
	const char *at = blank_before(text, number);

	return at ? strtoull(at, NULL, 10) : 0;
}

char proc_state(pid_t pid, const char *text)
{
	char state = proc_stat_state(text), of_thread[PROC_STAT_TEXT];

	if ((state == 'Z' || state == 'X') && proc_stat_field(text, STAT_THREADS) > 1) {
		proc_stat_read(proc_thread(pid), of_thread);
		state = proc_stat_state(of_thread);
	}
	return state;
}

uint64_t proc_started(pid_t pid)
{
	char stat[PROC_STAT_TEXT];

	proc_stat_read(pid, stat);
	return proc_stat_field(stat, PROC_STAT_START);
}

pid_t proc_parent(pid_t pid)
{
	char stat[PROC_STAT_TEXT];

	proc_stat_read(pid, stat);
	return (pid_t)proc_stat_field(stat, STAT_PARENT);
}

/* --- maps --------------------------------------------------------------------------------------------------------- */

bool proc_mapping_parse(struct mapping *mapping, const char *line)
{
	unsigned long start, end, offset, inode;
	char rights[5];
	int path = 0;

	if (sscanf(line, "%lx-%lx %4s %lx %*x:%*x %lu %n", &start, &end, rights, &offset, &inode, &path) != 5)
		return false;
	*mapping = (struct mapping){
		.start = start,
		.end = end,
		.protection = (rights[0] == 'r' ? PROT_READ : 0) | (rights[1] == 'w' ? PROT_WRITE : 0) |
		              (rights[2] == 'x' ? PROT_EXEC : 0),
		.offset = offset,
		.inode = inode,
		.path = line + path,
	};
	return true;
}
