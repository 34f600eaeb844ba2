/*
 * What the hook of a device (cdi/hook.h) has noted of each container that it was given to: one small file a container, beside the
 * groups' files, with the id that the container's control group has, too. Root reads them: they are root's, or are not believed.
 */
#ifndef NVTASKSET_CONTAINERS_H
#define NVTASKSET_CONTAINERS_H

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define CONTAINERS_DIRECTORY "/run/cdi/nvtaskset/.containers"
#define CONTAINERS_NAME ".containers" /* beside the files of groups, whose names do not begin so */
#define CONTAINER_TEXT 256

/* Each text is "" where it is not known. */
struct container {
	char id[CONTAINER_TEXT];
	char device[CONTAINER_TEXT];
	char pod[CONTAINER_TEXT], namespace[CONTAINER_TEXT], name[CONTAINER_TEXT]; /* as dcgm-exporter's labels */
	char trouble[ERROR_MAX]; /* why its programs run unrestricted */
	pid_t pid;               /* of its first process, and when that started, in the kernel's ticks since boot */
	uint64_t started;
	uint64_t proc;           /* the instance of /proc in which that is so; filled in when it is noted */
};

/* Whether an id can be a file's name: letters, digits and _.-, and no dot in front. */
bool container_id_is_valid(const char *id);

/* Notes it in a directory that is open. -1 with the reason. */
int container_write(int directory, const struct container *container, struct error *error);

/* Reads what is noted of the container with this id. False if nothing is. */
bool container_read(struct container *container, const char *directory, const char *id);

/* Calls `see` for each container that runs, and forgets those that have ended: only where pids are those that the hook saw, and so in no
 * other PID namespace. */
void containers_each(const char *directory, void (*see)(const struct container *container, void *context), void *context);

#endif
