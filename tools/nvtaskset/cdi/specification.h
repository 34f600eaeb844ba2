/*
 * The CDI specification (Container Device Interface, github.com/cncf-tags/container-device-interface) that `nvtaskset cdi` writes:
 * one file, whose devices are groups. It is the list of the devices, too: whatever else must be known of one stands in its group's
 * file, in the directory that has the specification's name without ".json".
 *
 * It has the lowest version that its fields need, and is replaced as a whole. A runtime loads no file with a field that it does
 * not know, so there is none but those of version 0.3.0.
 */
#ifndef NVTASKSET_CDI_SPECIFICATION_H
#define NVTASKSET_CDI_SPECIFICATION_H

#include "base/error.h"

#include <jansson.h>
#include <limits.h>
#include <stdbool.h>

#define CDI_FILE "/run/cdi/nvtaskset.json" /* where runtimes look; it is gone when the machine starts again, as are the groups */
#define CDI_KIND "nvtaskset/group"

/* How MPS is used in the containers of a device. */
struct device {
	const char *name;
	const char *group; /* the path of its file */
	const char *pipes; /* of MPS's control daemon; NULL: without MPS */
	unsigned int connections;
	int priority;         /* MPS's own, -1: as it is */
	const char *gpus;     /* from topology_environment_write */
	const char *driver;   /* the directory that the driver has on the host */
	bool hide, fail_misfits, strict;
};

struct specification {
	char path[PATH_MAX];      /* without links but its last name */
	char directory[PATH_MAX]; /* of the groups */
	json_t *root;             /* NULL: there is none yet */
};

/* -1 with the reason if a runtime would refuse a device of this name. Every such name is a group's, too. */
int device_name_check(const char *name, struct error *error);

/* Reads the file; one that is not there is no failure. -1 with the reason. The caller closes it also then. */
int specification_open(struct specification *specification, const char *path, struct error *error);
void specification_close(struct specification *specification);

/* The device, or NULL. */
json_t *specification_find(const struct specification *specification, const char *name);

/* In place of one of the same name. `hook` is the command's path, `library` where it is installed, `front` a directory of links. -1
 * with the reason. */
int specification_put(struct specification *specification, const struct device *device, const char *hook, const char *library,
                      const char *front, struct error *error);
void specification_remove(struct specification *specification, const char *name);

/* Replaces the file; without devices, it is removed: runtimes refuse one that has none. -1 with the reason. */
int specification_write(const struct specification *specification, struct error *error);

#endif
