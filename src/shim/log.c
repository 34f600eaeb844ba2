#include "log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool silent;
static bool asked_for;
static atomic_bool idle;

void log_open(void)
{
	const char *level = secure_getenv("NVTASKSET_LOG");

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

static void say(const char *format, va_list arguments)
{
	static const char prefix[] = "nvtaskset: ";
	char line[512];
	int saved = errno;

	memcpy(line, prefix, sizeof prefix);
	vsnprintf(line + sizeof prefix - 1, sizeof line - sizeof prefix, format, arguments);
	size_t length = strlen(line);

	line[length] = '\n';
	/* Nobody is there to hear of a failed write. */
	if (write(STDERR_FILENO, line, length + 1) < 0)
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
