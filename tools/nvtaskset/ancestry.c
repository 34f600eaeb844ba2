#include "ancestry.h"

#include "base/parent.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Whose child each is. */
static int find_parents(struct pids *parents, const struct pids *children, struct error *error)
{
	int result = 0;

	for (size_t i = 0; result == 0 && i < children->count; i++)
		result = pids_add(parents, parent_of(children->list[i]), error);
	return result;
}

int ancestry_family(struct pids *family, pid_t pid, struct error *error)
{
	struct pids all = {.count = 0}, parents = {.count = 0};
	size_t before = 0;

	*family = (struct pids){.count = 0};
	int result = pids_all(&all, error);

	if (result < 0)
		return -1;
	result = find_parents(&parents, &all, error);
	if (result == 0)
		result = pids_add(family, pid, error);
	/* A generation at a time. */
	while (result == 0 && family->count > before) {
		before = family->count;
		for (size_t i = 0; result == 0 && i < all.count; i++) {
			if (pids_have(family, parents.list[i]) && !pids_have(family, all.list[i]))
				result = pids_add(family, all.list[i], error);
		}
	}
	free(all.list);
	free(parents.list);
	if (result < 0)
		free(family->list);
	return result;
}

int ancestry_alone(struct pids *family, pid_t pid, struct error *error)
{
	*family = (struct pids){.count = 0};
	return pids_add(family, pid, error);
}
