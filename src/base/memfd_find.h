/*
 * Finds memfds that another process has open, by their names. The process may be hostile: nothing that it has open
 * makes us wait.
 */
#ifndef NVTASKSET_MEMFD_FIND_H
#define NVTASKSET_MEMFD_FIND_H

#include <stdbool.h>

/* The link that /proc/PID/fd shows for a memfd with this name. */
#define MEMFD_LINK(name) "/memfd:" name " (deleted)"

struct memfd_search {
	int directory;    /* /proc/PID/fd of the process */
	int first;        /* the lowest descriptor to look at */
	unsigned int *most; /* look at no more descriptors, and count this down; NULL: at all */
	const char *link; /* MEMFD_LINK */
	/* Whether this is the wanted file; `number` is its descriptor in the process. Preserves errno. */
	bool (*is_sought)(int file, int number, void *context);
	void *context;
};

/* The next descriptor with this link, from `first` on; -1 if there are no more. */
int memfd_next(int directory, int first, const char *link);

/* False where the kernel does not answer that, as under a filter of system calls that has no statx(2). */
bool memfd_are_known(void);

/* Whether a descriptor, of any kind, leads to a memfd. Does not ask any file system outside the kernel. */
bool memfd_is_one(int file);

/* Opens the file of one of this process's descriptors again, so that locks on it belong to the new descriptor:
 * close-on-exec, for reading and, if wanted and permitted, for writing. A lease on the file does not make us wait. -1 with errno. */
int descriptor_reopen(int number, bool to_write);

/* Opens the file of another process's descriptor if it is a memfd; `directory` is its /proc/PID/fd. -1 with errno. */
int memfd_open(int directory, int number);

/* Opens the first wanted file, for reading and writing, or only for reading if no more is permitted. -1 if there is none; errno is then 0, unless a file could not be
 * opened. */
int memfd_find(const struct memfd_search *search);

#endif
