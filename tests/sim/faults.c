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
	char text[512];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	dprintf(STDERR_FILENO, "simulated GPU: %s\n", text);
	abort();
}
