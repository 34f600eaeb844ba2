#include "log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool silent;
static bool asked_for;
static atomic_bool idle;
static struct stat standard_error; /* st_mode is 0 without standard error */

void log_open(void)
{
	const char *level = secure_getenv("NVTASKSET_LOG");

	if (fstat(STDERR_FILENO, &standard_error) < 0)
		standard_error.st_mode = 0;
	silent = level && strcmp(level, "off") == 0;
	asked_for = level && strcmp(level, "on") == 0;
}

void log_idle(void)
{
	atomic_store(&idle, !asked_for);
}

void log_wake(void)
{
	atomic_store(&idle, false);
}

/* A file that can be read back may be a database; a file only for writing is probably a log. */
static bool may_be_data(const struct stat *file)
{
	int flags = fcntl(STDERR_FILENO, F_GETFL);

	return S_ISBLK(file->st_mode) ||
	       (S_ISREG(file->st_mode) && (flags & O_ACCMODE) != O_WRONLY && !(flags & O_APPEND));
}

/* Whether descriptor 2 is still the program's standard error. Our line would spoil a file of the program. */
static bool is_standard_error(void)
{
	struct stat now;

	return standard_error.st_mode != 0 && fstat(STDERR_FILENO, &now) == 0 && now.st_dev == standard_error.st_dev &&
	       now.st_ino == standard_error.st_ino && !may_be_data(&now);
}

static void say(const char *format, va_list arguments)
{
	static const char prefix[] = "nvtaskset: ";
	char line[512];
	int saved = errno;

	memcpy(line, prefix, sizeof prefix);
	vsnprintf(line + sizeof prefix - 1, sizeof line - sizeof prefix, format, arguments);
	size_t length = strlen(line);

	line[length] = '\n';
	/* A failed write cannot be reported. */
	if (is_standard_error() && write(STDERR_FILENO, line, length + 1) < 0)
		errno = saved;
	errno = saved;
}

void log_warning(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	if (!silent && !atomic_load(&idle))
		say(format, arguments);
	va_end(arguments);
}

void log_last_words(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	say(format, arguments);
	va_end(arguments);
}
