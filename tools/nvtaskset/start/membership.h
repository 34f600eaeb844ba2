/*
 * The group that COMMAND will be in (state/group/group.h): the one that --group names, or that the environment names a
 * file of, or one of its own.
 */
#ifndef NVTASKSET_MEMBERSHIP_H
#define NVTASKSET_MEMBERSHIP_H

#include "cli/gpus.h"
#include "cli/options.h"
#include "state/segment/segment.h"

struct membership {
	const char *path;                  /* of the file that its group has; NULL: none */
	struct group group;                /* none: COMMAND's is still to be made */
	struct segment_revision partition; /* what it has; empty if it has none yet */
	struct group_identity former;      /* the group that this process is in, and the descriptor that names it */
	int descriptor;
};

/* Finds the group, if it is there. If it is to be joined by name, no other nvtaskset can do so until this process ends or
 * executes another program, except with --dry-run. -1 with the reason. */
int membership_find(struct membership *membership, const struct options *options, struct error *error);

/* Finds COMMAND's partition: the one that the command line asks for, as far as the group leaves a choice. A file's group that
 * has none yet gets it. -1 with the reason. */
int membership_choose(struct membership *membership, struct segment_revision *revision, const struct options *options,
                      const struct gpu_choices *chosen, const struct topology_list *list, struct error *error);

/* Gives this process its segment, which it keeps through the exec, and makes its group if there is none. If limits do not
 * allow it, the library in COMMAND works without, and prints a warning. */
void membership_begin(struct membership *membership, const struct segment_revision *revision, const struct options *options);

#endif
