#include "faults.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool fault(const char *name)
{
	const char *list = getenv("SIM_FAULTS");
	size_t length = strlen(name);
	bool found = false;

	while (list && *list && !found) {
		size_t item = strcspn(list, ",");

		found = item == length && strncmp(list, name, length) == 0;
		list += item;
		list += *list == ',';
	}
	return found;
}

void fatal(const char *format, ...)
{
	char line[512];
	va_list arguments;
	int length = snprintf(line, sizeof line, "simulated GPU: ");

	va_start(arguments, format);
	length += vsnprintf(line + length, sizeof line - (size_t)length - 1, format, arguments);
	va_end(arguments);
	if ((size_t)length > sizeof line - 2)
		length = sizeof line - 2;
	line[length] = '\n';
	if (write(STDERR_FILENO, line, (size_t)length + 1) < 0)
		abort();
	abort();
}
