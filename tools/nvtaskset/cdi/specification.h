/*
 * The CDI specification (Container Device Interface, github.com/cncf-tags/container-device-interface) of `nvtaskset
 * cdi`: one file, which is the list of devices. Each device is a group. All else about a device is in the file of its
 * group, in the directory with the specification's name without ".json".
 *
 * The specification has the lowest version with the needed fields, and is replaced as a whole. A runtime refuses a file
 * with an unknown field: all fields are of version 0.3.0.
 */
#pragma once

#include "base/error.h"
#include "state/pool/file.h"

#include <jansson.h>
#include <limits.h>

#define CDI_FILE "/run/cdi/nvtaskset.json" /* runtimes look here; gone after a boot, as the groups are */
#define CDI_KIND "nvtaskset/group"

struct device {
	const char *name;
	const char *group; /* the path of the group's file */
	const struct pool_place *pool; /* NULL: in no pool */
	const char *pipes; /* of MPS's control daemon; NULL: without MPS */
	unsigned int connections;
	int priority;         /* MPS's own; -1: unchanged */
	const char *gpus;     /* from topology_environment_write */
	const char *driver;   /* the driver's directory on the host */
	bool hide, fail_misfits, strict;
};

struct specification {
	char path[PATH_MAX];      /* without links, except the last name */
	char directory[PATH_MAX]; /* of the groups */
	json_t *root;             /* NULL: none yet */
};

/* -1 with the reason if a runtime would refuse the name. Every valid name is also valid for a group. */
int specification_check_name(const char *name, struct error *error);

/* Reads the file, which may be absent. -1 with the reason. The caller closes the specification also then. */
int specification_open(struct specification *specification, const char *path, struct error *error);
void specification_close(struct specification *specification);

json_t *specification_find(const struct specification *specification, const char *name);

/* Replaces the device of the same name. `hook` is the command's path, `library` the directory of our library, `front` a
 * directory of links. -1 with the reason. */
int specification_put(struct specification *specification, const struct device *device, const char *hook,
                      const char *library, const char *front, struct error *error);
void specification_remove(struct specification *specification, const char *name);

/* Replaces the file. Without devices, removes the file, since runtimes would refuse it. -1 with the reason. */
int specification_write(const struct specification *specification, struct error *error);
