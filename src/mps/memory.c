#include "memory.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ENTRY_MAX 48 /* ",16=18446744073709551615M" */

/* Whether an entry such as "0=1G" is of one of these GPUs. */
static bool is_of(const char *entry, const int *gpus, unsigned int count)
{
	char *end;
	long number = strtol(entry, &end, 10);
	bool found = false;

	for (unsigned int i = 0; i < count && end > entry && *end == '='; i++)
		found = found || number == gpus[i];
	return found;
}

int mps_limit_memory(const int *gpus, unsigned int count, uint64_t mebibytes, struct error *error)
{
	const char *before = getenv(MPS_MEMORY_ENVIRONMENT), *entry = before ? before : "";
	char *text = malloc(strlen(entry) + 2 + (size_t)count * ENTRY_MAX), *at = text;
	int result = -1;

	if (text) {
		for (size_t length; *entry; entry += length + (entry[length] == ',')) {
			length = strcspn(entry, ",");
			if (length > 0 && !is_of(entry, gpus, count))
				at += sprintf(at, ",%.*s", (int)length, entry);
		}
		for (unsigned int i = 0; i < count; i++)
			at += sprintf(at, ",%d=%" PRIu64 "M", gpus[i], mebibytes);
		result = setenv(MPS_MEMORY_ENVIRONMENT, text + 1, 1);
	}
	free(text);
	return result == 0 ? 0 : error_set(error, "MPS: no memory");
}
