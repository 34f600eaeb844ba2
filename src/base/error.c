#include "error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* The length in bytes of a control character of UTF-8 at the beginning: ASCII, C1, or the direction of text. */
static size_t control_length(const char *text)
{
	static const struct {
		size_t length;
		uint32_t first, last; /* as bytes */
	} ranges[] = {
		{1, 0x01, 0x1f},         {1, 0x7f, 0x7f},
		{2, 0xc280, 0xc29f},     {2, 0xd89c, 0xd89c},     /* U+0080 … U+009F, U+061C */
		{3, 0xe2808b, 0xe2808f}, {3, 0xe280a8, 0xe280ae}, /* U+200B … U+200F, U+2028 … U+202E */
		{3, 0xe281a0, 0xe281af},                          /* U+2060 … U+206F */
	};
	size_t found = 0;
	uint32_t bytes = 0;

	for (size_t length = 1; length <= 3 && text[length - 1]; length++) {
		bytes = bytes << 8 | (unsigned char)text[length - 1];
		for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++) {
			if (ranges[i].length == length && bytes >= ranges[i].first && bytes <= ranges[i].last)
				found = length;
		}
	}
	return found;
}

/* A reason can quote foreign text, but must stay a line, in order, and not move a terminal's cursor. */
static void make_printable(char *text)
{
	size_t length;

	while (*text) {
		length = control_length(text);
		memset(text, '?', length);
		text += length > 0 ? length : 1;
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

/* Puts the text in, followed by the text of an errno other than 0. */
static void put_text(struct error *error, int system_error, const char *format, va_list arguments)
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
		put_text(error, 0, format, arguments);
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
		put_text(error, errno, format, arguments);
	}
	va_end(arguments);
}

void error_reword(struct error *error, const char *format, ...)
{
	struct error new = *error;
	va_list arguments;

	va_start(arguments, format);
	put_text(&new, 0, format, arguments);
	va_end(arguments);
	*error = new;
}
