/*
 * Loads a library into a process, through a borrowed thread. What the thread needs for it, memory and a file in memory
 * with the library in it, it makes and gives up itself, with the process's own rights: nothing is written on its behalf
 * with ours.
 */
#ifndef NVTASKSET_ATTACH_LOAD_H
#define NVTASKSET_ATTACH_LOAD_H

#include "attach/loan.h"
#include "base/error.h"

#include <stddef.h>

struct library {
	char *content;
	size_t size;
	const char *told; /* to its entry */
};

/* Reads the file: content and size. -1 with the reason; the caller frees the content if 0. */
int library_read(struct library *library, const char *path, struct error *error);

/* Whether the process's limits let it have such a file. -1 with the reason: the kernel would end it. */
int library_check_limits(const struct library *library, pid_t pid, struct error *error);

/* The room that is needed for it in the loan (loan_open). */
size_t library_room(const struct library *library);

/* Loads it, and calls its entry (attach.h). -1 with the reason, which is the dynamic linker's or the library's own where
 * they refuse; nothing is left in the process then. LIBRARY_UNSEEN where the thread did not wait for us, who had no
 * processor: it is back, and whether the library has stayed is to be found out in another way. */
#define LIBRARY_UNSEEN 1
int library_load(const struct library *library, struct loan *loan);

#endif
