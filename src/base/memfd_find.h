/* Finds open memfds of another process by name. The process may be hostile: no open file makes the search wait. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

struct pids;
struct purse;

/* The link in /proc/PID/fd to a memfd with the name. */
#define MEMFD_LINK(name) "/memfd:" name " (deleted)"

/* The most files that a search opens of a process: our processes have a few. */
#define MEMFD_FILES 64

/* What file is sought. */
struct memfd_search {
	const char *link;               /* MEMFD_LINK */
	bool (*is_meant)(pid_t process); /* whether to look at the process; NULL: yes */
	int (*lowest_of)(pid_t process); /* the lowest descriptor to look at; NULL: 0 */
	unsigned int files;             /* the most files to open of a process; 0: MEMFD_FILES */
	/* Whether the file is wanted; `number` is the descriptor in the process. Preserves errno. */
	bool (*is_sought)(int file, int number, void *context);
	void *context;
};

/* The next descriptor with the link, from `first` on; -1 at the end. `directory` is /proc/PID/fd. */
int memfd_next(int directory, int first, const char *link, struct purse *purse);

/* False if this process cannot tell memfds from other files, as under a filter of system calls without statx(2). */
bool memfd_are_known(void);

/* Whether a descriptor, of any kind, leads to a memfd. Asks no file system outside the kernel. */
bool memfd_is_one(int file);

/* Opens the file of a descriptor of this process again: locks then belong to the new descriptor. Close-on-exec, for
 * reading and, if wanted and permitted, for writing. Does not wait for a lease on the file. -1 with errno. */
int memfd_reopen(int number, bool to_write);

/* Opens the file of another process's descriptor as memfd_reopen does, for writing if permitted; `directory` is
 * /proc/PID/fd. -1 with errno; -1 with errno as before if the file is no memfd. */
int memfd_open(int directory, int number);

/* Opens the first wanted file: in `directory`, from the descriptor `first` on; of a process; of several processes; of
 * all processes. For reading and writing, or else only for reading. -1 without a wanted file; the errno of
 * memfd_find_in is then 0, unless a file could not be opened. `purse` pays for the looks; without a purse, a search of
 * many processes makes a purse of its own. */
int memfd_find_in(int directory, int first, const struct memfd_search *search, struct purse *purse);
int memfd_find_of(pid_t pid, const struct memfd_search *search, struct purse *purse);
int memfd_find_among(const struct pids *pids, const struct memfd_search *search, struct purse *purse);
int memfd_find_anywhere(const struct memfd_search *search, struct purse *purse);
