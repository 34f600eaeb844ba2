#include "error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* A reason can quote what others said; nothing in it may move a cursor, and it is one line. */
static void make_printable(char *text)
{
	for (; *text; text++) {
		if ((unsigned char)*text < ' ' || *text == '\x7f')
			*text = '?';
	}
}

void error_fill(struct error *error, const char *format, ...)
{
	int saved = errno;

	if (error) {
		va_list arguments;

		va_start(arguments, format);
		vsnprintf(error->reason, sizeof error->reason, format, arguments);
		va_end(arguments);
		make_printable(error->reason);
	}
	errno = saved;
}

void error_fill_errno(struct error *error, const char *format, ...)
{
	int saved = errno;

	if (error) {
		va_list arguments;
		size_t length;

		va_start(arguments, format);
		vsnprintf(error->reason, sizeof error->reason, format, arguments);
		va_end(arguments);
		length = strlen(error->reason);
		snprintf(error->reason + length, sizeof error->reason - length, ": %s", strerror(saved));
		make_printable(error->reason);
	}
	errno = saved;
}
