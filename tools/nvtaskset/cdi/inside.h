/* A device in a container's image: the paths, the call of the hook, and the hook's work there. */
#pragma once

#include "base/error.h"
#include "mps/reach.h"
#include "state/group/group.h"
#include "state/pool/pool.h"

#define INSIDE_LIBRARY "/opt/nvtaskset/lib"   /* the host's installation of nvtaskset */
#define INSIDE_FRONT "/opt/nvtaskset/front"   /* only the names that the dynamic linker must find */
#define INSIDE_GROUPS GROUP_MOUNTS            /* with the group of the device */
#define INSIDE_POOLS POOL_MOUNTS           /* with the pool of the group */
#define INSIDE_PAGES POOL_PAGES            /* with the page of the group in the pool */
#define INSIDE_MPS MPS_MOUNT                  /* the pipes of the control daemon of the device */
#define INSIDE_DRIVER "/etc/ld.so.conf.d/00-000-nvtaskset.driver" /* a link to the driver, made by the hook */

#define HOOK_NAME "nvtaskset-cdi-hook" /* argument 0; then the group's file, the driver's directory, "strict" or "" */

/* --- image.c ------------------------------------------------------------------------------------------------------ */

/*
 * A container's image, in which the hook of a device puts our library in front of the driver's, in the dynamic linker's
 * cache. For this, the hook writes two files into the image's /etc/ld.so.conf.d, whose names come before the names of
 * NVIDIA's toolkit (00-nvcr-…), and has the host's ldconfig make the cache. NVIDIA's hook makes the cache anew, and
 * may come before or after this hook. ldconfig in the container makes the same cache.
 *
 * An image in which our library cannot be loaded stays unchanged: an image without glibc, with an older glibc, of
 * another architecture, or without a driver.
 *
 * The image may be hostile. All work in the image is confined (confine.c).
 */

/* `driver` is the directory that the driver has on the host, `search_path` the container's LD_LIBRARY_PATH, or "". -1
 * with the reason why programs of the image run unrestricted. */
int image_put_in_front(const char *root, const char *driver, const char *search_path, struct error *error);

/* --- confine.c ---------------------------------------------------------------------------------------------------- */

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

/* --- hook.c ------------------------------------------------------------------------------------------------------- */

/*
 * The hook of a device: a container runtime calls the hook for each container that gets the device, before the
 * container's programs start (OCI's createContainer).
 *
 * The hook puts our library in front of the driver's in the container's image (image.c), and notes each container
 * (show/containers.h). Where our library cannot be put there, the image's programs run unrestricted, and the note has
 * the reason. With --strict, the container does not start.
 */

bool hook_is_me(const char *name);

/* The exit status. */
int hook_main(int count, char **arguments);
