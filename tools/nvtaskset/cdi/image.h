/*
 * What the hook of a device does in a container's image: it puts our library in front of the driver's in the image's own dynamic
 * linker's cache. For that it writes two files into the image's /etc/ld.so.conf.d, whose names come before those of NVIDIA's toolkit
 * (00-nvcr-…), and has the cache made. So it does not matter whether NVIDIA's hook, which makes the cache anew, comes before or after
 * this one; and whoever calls ldconfig in the container gets the same.
 *
 * It changes nothing in an image in which our library cannot be loaded: one without glibc, or with an older one, or of another
 * architecture, or without a driver.
 *
 * The image may be hostile. All that is done there is done confined (confine.h).
 */
#ifndef NVTASKSET_CDI_IMAGE_H
#define NVTASKSET_CDI_IMAGE_H

#include "base/error.h"

/* `driver` is the directory that the driver has on the host, `search_path` the container's LD_LIBRARY_PATH, or "". -1 with the reason
 * why programs of the image run unrestricted. */
int image_put_in_front(const char *root, const char *driver, const char *search_path, struct error *error);

#endif
