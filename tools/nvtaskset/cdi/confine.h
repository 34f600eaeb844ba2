/*
 * Confines work in a container's image, which may be hostile, to that image.
 *
 * The work is done by a process of its own. Its mount namespace contains the image and nothing of the host. There the image is
 * read-only and without devices, with an empty directory over each procfs: links of procfs lead into other processes, also out of a
 * root directory. For writing, the process has a second view: the image's own file system alone, without all that is mounted in it.
 * So no link of an image leads a write into a volume or to the host. The process has one capability (CAP_DAC_OVERRIDE: an image's
 * directories may belong to any user), no descriptor of the runtime's, and half a minute.
 *
 * Linux 5.12 and the right to mount are needed; without them, nothing is done.
 */
#ifndef NVTASKSET_CDI_CONFINE_H
#define NVTASKSET_CDI_CONFINE_H

#include "base/error.h"

/* In the process's own view, an empty directory for its files: 16 MiB of memory. */
#define CONFINED_SCRATCH "/opt/nvtaskset/groups"

/* Calls `work` in such a process, with the second view as `image`. Returns the result of `work`, 0 or -1 with the reason. The process
 * inherits the caller's memory, and its descriptors but the first three. */
int confine(const char *root, int (*work)(int image, const void *task, struct error *error), const void *task, struct error *error);

/* In `work`: opens a directory of the image, to write there; the last name is made if it is missing. -1 with errno. */
int confined_directory(int image, const char *path);

/* In `work`: executes a program that is open, with bounds for memory, time and output. A program that uses no processor time for a second
 * is killed: it waits for the other end of a pipe. -1 with the reason. */
int confined_execute(int program, char *const arguments[], struct error *error);

#endif
