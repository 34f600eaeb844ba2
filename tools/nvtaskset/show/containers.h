/*
 * Notes about containers, by the hook of a device (cdi/inside.h): a small file for each container, beside the files of
 * groups. The file's name is the id in the name of the container's control group. Only files of root and of the reader
 * are believed.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define CONTAINERS_DIRECTORY "/run/cdi/nvtaskset/.containers"
#define CONTAINERS_NAME ".containers" /* no group's file has a dot in front */
#define CONTAINER_TEXT 256

/* A text is "" where it is not known. */
struct container {
	char id[CONTAINER_TEXT];
	char device[CONTAINER_TEXT];
	char pod[CONTAINER_TEXT], namespace[CONTAINER_TEXT], name[CONTAINER_TEXT]; /* as dcgm-exporter's labels */
	char trouble[ERROR_MAX]; /* why the container's programs run unrestricted */
	/* The container's first process, and when the process started, in the kernel's ticks since boot. */
	pid_t pid;
	uint64_t started;
	uint64_t proc;           /* the instance of /proc in which `pid` is; filled in by container_write */
};

/* Whether an id can be a file's name: letters, digits and _.-, and no dot in front. */
bool container_id_is_valid(const char *id);

/* Writes a note into an open directory. */
void container_write(int directory, const struct container *container);

/* Reads the note of the container with this id. False if there is none. */
bool container_read(struct container *container, const char *directory, const char *id);

/* Calls `see` for each running container. Forgets ended containers, except where the hook's pids are foreign
 * (`proc`). */
void containers_each(const char *directory, void (*see)(const struct container *container, void *context),
                     void *context);
