/* Replaces a file as a whole: whoever reads it has the old content or the new one. */
#ifndef NVTASKSET_REPLACE_H
#define NVTASKSET_REPLACE_H

#include "base/error.h"

#include <stddef.h>

/* -1 with the reason, and the old file is as it was; so it is if this is killed. Only a regular file is replaced. */
int replace_file(const char *path, const char *text, size_t length, struct error *error);

#endif
