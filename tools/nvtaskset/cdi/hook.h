/*
 * The hook of a device: what a container runtime calls for each container that gets one, before its programs start (OCI's
 * createContainer).
 *
 * It puts our library in front of the driver's in the container's own dynamic linker's cache. For that it writes two files into the
 * image's /etc/ld.so.conf.d, whose names come before those of NVIDIA's toolkit (00-nvcr-…), and has the cache made. So it does not
 * matter whether NVIDIA's hook, which makes the cache anew, comes before or after this one; and whoever calls ldconfig in the
 * container gets the same.
 *
 * It changes nothing in an image in which our library cannot be loaded: one without glibc, or with an older one, or of another
 * architecture, or without a driver. What runs there is unrestricted, and that is noted (show/containers.h). With --strict, the
 * container does not start.
 *
 * The image may be hostile. All that is done there is done inside: the process enters it as its root, and never leaves it.
 */
#ifndef NVTASKSET_CDI_HOOK_H
#define NVTASKSET_CDI_HOOK_H

#include <stdbool.h>

bool hook_is_me(const char *name);

/* The exit status. */
int hook_main(int count, char **arguments);

#endif
