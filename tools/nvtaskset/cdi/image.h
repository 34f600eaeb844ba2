/*
 * A container's image, in which the hook of a device puts our library in front of the driver's, in the dynamic linker's
 * cache. For this, the hook writes two files into the image's /etc/ld.so.conf.d, whose names come before the names of
 * NVIDIA's toolkit (00-nvcr-…), and has the host's ldconfig make the cache. NVIDIA's hook makes the cache anew, and
 * may come before or after this hook. ldconfig in the container makes the same cache.
 *
 * An image in which our library cannot be loaded stays unchanged: an image without glibc, with an older glibc, of
 * another architecture, or without a driver.
 *
 * The image may be hostile. All work in the image is confined (confine.h).
 */
#ifndef NVTASKSET_CDI_IMAGE_H
#define NVTASKSET_CDI_IMAGE_H

#include "base/error.h"

/* `driver` is the directory that the driver has on the host, `search_path` the container's LD_LIBRARY_PATH, or "". -1
 * with the reason why programs of the image run unrestricted. */
int image_put_in_front(const char *root, const char *driver, const char *search_path, struct error *error);

#endif
