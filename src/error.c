#include "error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int error_set(struct error *error, const char *format, ...)
{
	int saved = errno;

	if (error) {
		va_list arguments;

		va_start(arguments, format);
		vsnprintf(error->reason, sizeof error->reason, format, arguments);
		va_end(arguments);
	}
	errno = saved;
	return -1;
}

int error_set_errno(struct error *error, const char *format, ...)
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
	}
	errno = saved;
	return -1;
}
