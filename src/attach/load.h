/*
 * Loads a library into a process, through a borrowed thread. The thread itself allocates and frees the memory and the
 * memfd for the library, with the process's own rights: nothing is written with ours.
 */
#ifndef NVTASKSET_ATTACH_LOAD_H
#define NVTASKSET_ATTACH_LOAD_H

#include "attach/borrowed_thread.h"
#include "base/error.h"

#include <stddef.h>

struct library {
	char *content;
	size_t size;
	const char *argument; /* for the library's entry */
};

/* Reads the file's content and size. -1 with the reason; on success, the caller frees the content. */
int library_read(struct library *library, const char *path, struct error *error);

/* The bytes of room in the borrowed thread for the library (borrowed_open). */
size_t library_room(const struct library *library);

/* Loads the library and calls its entry (entry.h). -1 with the reason of the dynamic linker or the library; nothing is
 * then left in the process. LIBRARY_UNSEEN if we were without a processor for too long, and the thread went back
 * without us: the caller must find out in another way whether the library is loaded. */
#define LIBRARY_UNSEEN 1
int library_load(const struct library *library, struct borrowed_thread *borrowed);

#endif
