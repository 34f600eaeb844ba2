/* A list of process ids. */
#pragma once

#include "error.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Initially all zero. The caller frees the list. */
struct pids {
	size_t count;
	pid_t *list;
};

/* -1 with the reason if there is no memory. */
int pids_add(struct pids *pids, pid_t pid, struct error *error);

bool pids_have(const struct pids *pids, pid_t pid);

/* Lists every process in /proc, by rising number. -1 with the reason, and nothing to free. */
int pids_all(struct pids *pids, struct error *error);
