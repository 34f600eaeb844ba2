/*
 * The tasks of a borrowed thread: takes a segment (state/segment/segment.h; give.c), or loads a library (load.c).
 */
#pragma once

#include "base/error.h"
#include "borrowed_thread.h"
#include "state/segment/layout.h"

/* --- give.c ------------------------------------------------------------------------------------------------------- */

/*
 * Gives a process a segment, by a few system calls of a borrowed thread. No library is loaded.
 *
 * The new handle gets a number below the inherited handle, to be found first. The inherited handle stays open: another
 * thread of the process may be closing it, and the number may then belong to a file of the program's.
 */

struct segment_gift {
	int inherited; /* the descriptor of the shared segment */
	struct {
		char name[sizeof SEGMENT_NAME];
		char path[32]; /* /proc/self/fd/N of the new file, once the file exists */
		struct segment_memory content;
	} room;
};

/* Copies the revision shared by the process now. -1 with the reason: nothing is shared, or the limits leave no room. */
int attach_segment_prepare(struct segment_gift *gift, pid_t pid, struct error *error);

/* -1 with the reason; the process then has no new descriptor or memory. */
int attach_segment_give(const struct segment_gift *gift, struct borrowed_thread *borrowed);

/* --- load.c ------------------------------------------------------------------------------------------------------- */

/*
 * Loads a library into a process, through a borrowed thread. The thread itself allocates and frees the memory and the
 * memfd for the library, with the process's own rights: nothing is written with ours.
 */

struct library {
	char *content;
	size_t size;
	const char *argument; /* for the library's entry */
};

/* Reads the file's content and size. -1 with the reason; on success, the caller frees the content. */
int attach_read_library(struct library *library, const char *path, struct error *error);

/* The bytes of room in the borrowed thread for the library (borrowed_open). */
size_t attach_library_room(const struct library *library);

/* Loads the library and calls its entry (entry.h). -1 with the reason of the dynamic linker or the library; nothing is
 * then left in the process. LIBRARY_UNSEEN if we were without a processor for too long, and the thread went back
 * without us: the caller must find out in another way whether the library is loaded. */
#define LIBRARY_UNSEEN 1
int attach_load_library(const struct library *library, struct borrowed_thread *borrowed);
