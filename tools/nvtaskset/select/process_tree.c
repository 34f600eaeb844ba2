#include "process_tree.h"

#include "base/proc.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Finds the parent of each of the children, in the same order. */
static int find_parents(struct pids *parents, const struct pids *children, struct error *error)
{
	int result = 0;

	for (size_t i = 0; result == 0 && i < children->count; i++)
		result = pids_add(parents, parent_of(children->list[i]), error);
	return result;
}

int process_tree_find(struct pids *tree, pid_t pid, struct error *error)
{
	struct pids all = {.count = 0}, parents = {.count = 0};
	size_t before = 0;

	*tree = (struct pids){.count = 0};
	int result = pids_all(&all, error);

	if (result < 0)
		return -1;
	result = find_parents(&parents, &all, error);
	if (result == 0)
		result = pids_add(tree, pid, error);
	/* Each round adds at least the next generation, until one adds none: a child may come before its parent in the
	 * list. */
	while (result == 0 && tree->count > before) {
		before = tree->count;
		for (size_t i = 0; result == 0 && i < all.count; i++) {
			if (pids_have(tree, parents.list[i]) && !pids_have(tree, all.list[i]))
				result = pids_add(tree, all.list[i], error);
		}
	}
	free(all.list);
	free(parents.list);
	if (result < 0)
		free(tree->list);
	return result;
}

int process_tree_root_only(struct pids *tree, pid_t pid, struct error *error)
{
	*tree = (struct pids){.count = 0};
	return pids_add(tree, pid, error);
}
