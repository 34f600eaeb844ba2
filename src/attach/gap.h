/*
 * Places for a thread's way back (machine.h): the gaps behind libraries' code.
 *
 * A library's code ends somewhere within a page. The rest of the page is zero, executable and unused: the linker has
 * put nothing there, and no program refers to the bytes. So the way back is safe there, with any stack of the thread
 * and any work of other threads; and to restore the gap, we write zeros. Only the process's own copy of the page is
 * written to.
 *
 * If an attacher dies, the way back stays, since the thread may still need the way. A later attacher takes the place
 * again once the thread does not need the way.
 */
#ifndef NVTASKSET_ATTACH_GAP_H
#define NVTASKSET_ATTACH_GAP_H

#include "attach/machine.h"
#include "attach/target.h"

#include <stdint.h>
#include <sys/types.h>

/* Writes a way back for its owner into a gap. `thread` must be stopped, traced by us, and not in a gap. Returns the
 * address; 0 with errno, ENOSPC if there is no room. */
uint64_t gap_lay(const struct target *target, pid_t thread, const struct machine_way *way);

/* Notes the thread's memory for us in the way back, which is needed while the memory exists. -1: thread has ended. */
int gap_note_memory(pid_t thread, uint64_t way, uint64_t memory);

/* Restores the zeros. */
void gap_clear(pid_t thread, uint64_t way);

#endif
