/* Paths of files in directories. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* With the first `length` characters of `directory`, for lists of directories. False if the path does not fit. */
static inline bool path_join_part(char path[PATH_MAX], const char *directory, size_t length, const char *name)
{
	int written = length < PATH_MAX ? snprintf(path, PATH_MAX, "%.*s/%s", (int)length, directory, name) : 0;

	return written > 0 && written < PATH_MAX;
}

static inline bool path_join(char path[PATH_MAX], const char *directory, const char *name)
{
	return path_join_part(path, directory, strlen(directory), name);
}
