/*
 * Files in memory (memfd_create) that another process has open, by their names. The process may be hostile: nothing that it
 * has open makes us wait.
 */
#ifndef NVTASKSET_MEMFD_FIND_H
#define NVTASKSET_MEMFD_FIND_H

#include <stdbool.h>
#include <sys/types.h>

/* As /proc/PID/fd shows a file with this name. */
#define MEMFD_LINK(name) "/memfd:" name " (deleted)"

struct memfd_search {
	int directory;    /* /proc/PID/fd of the process whose descriptors they are */
	int first;        /* the lowest descriptor to look at */
	const char *link; /* MEMFD_LINK */
	/* Whether it is this one; `number` is the descriptor's there. Preserves errno. */
	bool (*is_sought)(int file, int number, void *context);
	void *context;
};

/* The next descriptor with this name, from `first` on; -1 where there are no more. */
int memfd_next(int directory, int first, const char *link);

/* Whether a descriptor leads to a file in memory, whatever may be done with it; without asking a file system that is not the
 * kernel's own. */
bool memfd_is_one(int file);

/* Opens the file of a descriptor of this process anew, so that locks on it are this hold's own: close-on-exec, for reading and
 * writing, or only for reading where no more is permitted. Nor may a lease on it make us wait. -1 with errno. */
int memfd_reopen(int number);

/* Opens the file close-on-exec, for reading and writing, or only for reading where no more is permitted. -1 where there is none: errno is not 0 where one could not be
 * looked at. */
int memfd_find(const struct memfd_search *search);

#endif
