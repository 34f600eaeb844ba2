/*
 * Notes about containers, by the hook of a device (cdi/hook.h): a small file for each container, beside the groups'
 * files, named by the id that the container's control group has, too. Only files of root and of the reader are
 * believed.
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
	uint64_t proc;           /* the instance of /proc with this pid, filled in by container_write */
};

/* Whether an id can be a file's name: letters, digits and _.-, and no dot in front. */
bool container_id_is_valid(const char *id);

/* Writes a note into an open directory. -1 with the reason. */
int container_write(int directory, const struct container *container, struct error *error);

/* Reads the note of the container with this id. False if there is none. */
bool container_read(struct container *container, const char *directory, const char *id);

/* Calls `see` for each container that runs. Forgets containers that have ended, but not in another PID namespace, where
 * the hook's pids mean nothing. */
void containers_each(const char *directory, void (*see)(const struct container *container, void *context), void *context);

#endif
