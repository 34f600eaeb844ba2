#include "log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MESSAGE_MAX 512 /* bytes */

/* A pipe has room, as poll says, if PIPE_BUF bytes fit. */
_Static_assert(MESSAGE_MAX <= PIPE_BUF, "a pipe that has room takes a whole line");

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

/* Whether a line fits into standard error. A write to a full pipe, socket or terminal waits for a reader. */
static bool has_room(void)
{
	struct pollfd file = {.fd = STDERR_FILENO, .events = POLLOUT};

	return poll(&file, 1, 0) == 1 && (file.revents & POLLOUT);
}

/* Writes to a pipe or socket that may have no reader. The kernel then raises SIGPIPE in the writing thread, and SIGPIPE
 * would end the program: the signal is blocked and taken away, unless a signal of the program's own is pending. */
static void write_without_signal(const char *line, size_t length)
{
	const struct timespec now = {.tv_sec = 0};
	sigset_t broken_pipe, before, pending;

	sigemptyset(&broken_pipe);
	sigaddset(&broken_pipe, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &broken_pipe, &before);
	sigpending(&pending);
	/* A failed write cannot be reported. */
	if (write(STDERR_FILENO, line, length) < 0 && errno == EPIPE && !sigismember(&pending, SIGPIPE))
		sigtimedwait(&broken_pipe, NULL, &now);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void say(const char *format, va_list arguments)
{
	static const char prefix[] = "nvtaskset: ";
	char line[MESSAGE_MAX];
	int saved = errno;

	memcpy(line, prefix, sizeof prefix);
	vsnprintf(line + sizeof prefix - 1, sizeof line - sizeof prefix, format, arguments);
	size_t length = strlen(line);

	line[length] = '\n';
	if (is_standard_error() && has_room())
		write_without_signal(line, length + 1);
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
