#include "proc_status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint64_t proc_status(const char *process, const char *field, uint64_t unknown)
{
	char path[64], *line = NULL;
	size_t size = 0;
	uint64_t number = unknown;

	snprintf(path, sizeof path, "/proc/%s/status", process);
	FILE *file = fopen(path, "re");

	while (file && getline(&line, &size, file) > 0) {
		const char *last = strncmp(line, field, strlen(field)) == 0 ? strrchr(line, '\t') : NULL;

		if (last)
			number = strtoull(last, NULL, 10);
	}
	free(line);
	if (file)
		fclose(file);
	return number;
}
