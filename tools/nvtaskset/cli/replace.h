/* A file that is replaced as a whole: readers have the old content or the new. */
#pragma once

#include "base/error.h"

#include <stddef.h>

/* -1 with the reason, and the old file is as before, also after a signal. Only a regular file is replaced. */
int replace_file(const char *path, const char *text, size_t length, struct error *error);
