/*
 * The hook of a device: a container runtime calls the hook for each container that gets the device, before the
 * container's programs start (OCI's createContainer).
 *
 * The hook puts our library in front of the driver's in the container's image (inside.h), and notes each container
 * (show/containers.h). Where our library cannot be put there, the image's programs run unrestricted, and the note has
 * the reason. With --strict, the container does not start.
 */
#ifndef NVTASKSET_CDI_HOOK_H
#define NVTASKSET_CDI_HOOK_H

#include <stdbool.h>

bool hook_is_me(const char *name);

/* The exit status. */
int hook_main(int count, char **arguments);

#endif
