#include "error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* A reason can quote others' text. It must stay one line, and must not move a terminal's cursor. */
static void make_printable(char *text)
{
	for (; *text; text++) {
		if ((unsigned char)*text < ' ' || *text == '\x7f')
			*text = '?';
	}
}

static enum nvtaskset_error_code code_of(int system_error)
{
	enum nvtaskset_error_code code = NVTASKSET_ERROR_SYSTEM;

	if (system_error == EACCES || system_error == EPERM)
		code = NVTASKSET_ERROR_NOT_PERMITTED;
	else if (system_error == ENOMEM)
		code = NVTASKSET_ERROR_NO_MEMORY;
	return code;
}

/* Puts the text in, and behind it that of an errno, if that is not 0. */
static void put(struct error *error, int system_error, const char *format, va_list arguments)
{
	int saved = errno;

	vsnprintf(error->reason, sizeof error->reason, format, arguments);
	if (system_error != 0) {
		size_t length = strlen(error->reason);

		snprintf(error->reason + length, sizeof error->reason - length, ": %s", strerror(system_error));
	}
	make_printable(error->reason);
	errno = saved;
}

void error_fill(struct error *error, enum nvtaskset_error_code code, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	if (error) {
		put(error, 0, format, arguments);
		error->code = code;
		error->system_error = 0;
	}
	va_end(arguments);
}

void error_fill_errno(struct error *error, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	if (error) {
		error->code = code_of(errno);
		error->system_error = errno;
		put(error, errno, format, arguments);
	}
	va_end(arguments);
}

void error_reword(struct error *error, const char *format, ...)
{
	struct error new = *error;
	va_list arguments;

	va_start(arguments, format);
	put(&new, 0, format, arguments);
	va_end(arguments);
	*error = new;
}
