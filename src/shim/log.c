#include "log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool silent;

void log_open(void)
{
	const char *level = getenv("NVTASKSET_LOG");

	silent = level && strcmp(level, "off") == 0;
}

void log_warning(const char *format, ...)
{
	static const char prefix[] = "nvtaskset: ";
	char line[512];
	va_list arguments;
	int saved = errno;

	if (silent)
		return;
	memcpy(line, prefix, sizeof prefix);
	va_start(arguments, format);
	vsnprintf(line + sizeof prefix - 1, sizeof line - sizeof prefix, format, arguments);
	va_end(arguments);
	size_t length = strlen(line);

	line[length] = '\n';
	/* Nobody is there to hear of a failed write. */
	if (write(STDERR_FILENO, line, length + 1) < 0)
		errno = saved;
	errno = saved;
}
