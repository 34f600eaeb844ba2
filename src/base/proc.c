#include "proc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_ROOM 512

/* False with errno if the path is too long. */
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

bool proc_owner(pid_t pid, uid_t *owner)
{
	char path[32];
	struct stat status;

	snprintf(path, sizeof path, "/proc/%d", (int)pid);
	bool found = stat(path, &status) == 0;

	*owner = found ? status.st_uid : 0;
	return found;
}
