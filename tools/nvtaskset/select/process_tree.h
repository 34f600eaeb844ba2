/* Process trees: a process and its descendants. */
#ifndef NVTASKSET_SELECT_PROCESS_TREE_H
#define NVTASKSET_SELECT_PROCESS_TREE_H

#include "base/error.h"
#include "base/pids.h"

#include <sys/types.h>

/* Finds `pid`, which comes first, and its living descendants. The caller frees the list. -1 with the reason, and
 * nothing to free. */
int process_tree_find(struct pids *tree, pid_t pid, struct error *error);

/* The same with `pid` alone, without its descendants. */
int process_tree_root_only(struct pids *tree, pid_t pid, struct error *error);

#endif
