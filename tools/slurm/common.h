/* Shared by the parts of the plugin: reasons of failures, and numbers as text. */
#pragma once

#include "base/error.h"
#include "nvtaskset.h"

#include <string.h>

/* Leaves a reason for the caller; `to` may be NULL. Always -1. */
#define reason_set(to, code, ...) error_set_code((struct error *)(to), code, __VA_ARGS__)

/* The same, followed by the text of errno. */
#define reason_set_errno(to, ...) error_set_errno((struct error *)(to), __VA_ARGS__)

/* Decimal digits only, from `least` to `most`. -1 for any other text. */
static inline int number_parse(unsigned int *number, const char *text, unsigned int least, unsigned int most)
{
	unsigned long long value = 0;

	/* Ten digits cannot overflow. */
	if (!*text || strlen(text) > 10 || text[strspn(text, "0123456789")])
		return -1;
	for (const char *digit = text; *digit; digit++)
		value = value * 10 + (unsigned int)(*digit - '0');
	if (value < least || value > most)
		return -1;
	*number = (unsigned int)value;
	return 0;
}
