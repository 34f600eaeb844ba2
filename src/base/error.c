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

void error_fill(struct error *error, enum nvtaskset_error_code code, const char *format, ...)
{
	int saved = errno;

	if (error) {
		va_list arguments;

		va_start(arguments, format);
		vsnprintf(error->reason, sizeof error->reason, format, arguments);
		va_end(arguments);
		make_printable(error->reason);
		error->code = code;
		error->system_error = 0;
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
		error->code = code_of(saved);
		error->system_error = saved;
	}
	errno = saved;
}

void error_reword(struct error *error, const char *format, ...)
{
	char reason[ERROR_MAX];
	va_list arguments;
	int saved = errno;

	va_start(arguments, format);
	vsnprintf(reason, sizeof reason, format, arguments);
	va_end(arguments);
	make_printable(reason);
	memcpy(error->reason, reason, sizeof reason);
	errno = saved;
}
