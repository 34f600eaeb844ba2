/*
 * Whom -p is about.
 */
#ifndef NVTASKSET_SELECT_TARGETS_H
#define NVTASKSET_SELECT_TARGETS_H

#include "base/pids.h"
#include "cli/gpus.h"
#include "cli/options.h"
#include "state/segment/edit.h"

/* The process, and with -a those of its descendants that have a partition of their own. */
struct targets {
	size_t count;
	struct editor *editors;
	struct segment_revision *revisions; /* of each, as last read */
};

/* Those of a tree (process_tree.h) that have a partition of their own: of a shell and what it has started, many share its.
 * -1 with the reason where none has one; to be closed then, too. */
int targets_open(struct targets *targets, const struct pids *tree, struct error *error);
void targets_close(struct targets *targets);

/* Reads the revisions anew. */
int targets_read(struct targets *targets, struct error *error);

/* Why a process's partition is not in force; NULL if it is. If our library is being loaded just now, it waits for that. */
const char *target_obstacle(const struct editor *editor);

/* Which GPUs: those of -G; or those that the partition names, or CUDA's first if it names none. -1 with the reason. */
int target_gpus(struct gpu_choices *chosen, const struct options *options, const struct topology_list *list,
                const struct segment_revision *revision, struct error *error);

#endif
