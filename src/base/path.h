/* Paths of files in directories. */
#ifndef NVTASKSET_PATH_H
#define NVTASKSET_PATH_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/* False if the path does not fit. */
bool path_join(char path[PATH_MAX], const char *directory, const char *name);

/* The same with the first `length` characters of `directory`, for lists of directories. */
bool path_join_part(char path[PATH_MAX], const char *directory, size_t length, const char *name);

#endif
