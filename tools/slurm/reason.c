#include "reason.h"

#include <stdarg.h>
#include <stdio.h>

int reason_set(struct nvtaskset_error *error, enum nvtaskset_error_code code, const char *format, ...)
{
	va_list arguments;

	if (!error)
		return -1;
	va_start(arguments, format);
	vsnprintf(error->reason, sizeof error->reason, format, arguments);
	va_end(arguments);
	error->code = code;
	error->system_error = 0;
	return -1;
}
