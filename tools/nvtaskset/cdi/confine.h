/*
 * Confines work in a container's image to the image, which may be hostile.
 *
 * A separate process does the work. Its mount namespace contains the image and nothing of the host. The image is
 * read-only there, without devices, and with an empty directory over each procfs: links of a procfs lead into other
 * processes, also out of a root directory. For writing, the process has a second view: the image's own file system,
 * without its mounts. So no link of an image leads a write into a volume or to the host. The process has one
 * capability (CAP_DAC_OVERRIDE, since an image's directories belong to any user), no descriptor of the runtime's, and
 * bounds: half a minute, 10 s of processor time, 128 MiB of memory, 16 MiB for a file.
 *
 * Confinement needs Linux 5.12 and the right to mount. Without these, no work is done.
 */
#ifndef NVTASKSET_CDI_CONFINE_H
#define NVTASKSET_CDI_CONFINE_H

#include "base/error.h"
#include "inside.h"

/* In the process's view, an empty directory in memory, for 16 MiB. Each container with a device has the directory. */
#define CONFINED_SCRATCH INSIDE_GROUPS

/* Does the task in the image: 0, or -1 with the reason. `image` is the view for writing. */
typedef int confined_work(int image, const void *task, struct error *error);

/* Calls `work` in a confined process, which inherits the caller's memory, and the caller's descriptors but the first
 * three. 0, or -1 with the reason, also if the process was killed. */
int confine(const char *root, confined_work *work, const void *task, struct error *error);

/* In `work`: opens a directory of the image for writing, and makes the last directory if missing. -1 with errno. */
int confined_directory(int image, const char *path);

/* In `work`: executes the program of an open file, within the same bounds. A program that uses no processor time for
 * three seconds waits for the other end of a pipe, and is killed. -1 with the reason. */
int confined_execute(int program, char *const arguments[], struct error *error);

#endif
