/*
 * Places for a thread's way back (machine.h): the gaps behind libraries' code.
 *
 * A library's code ends somewhere within a page. The rest of that page is zero and executable, and nobody uses it:
 * the linker has put nothing there, and no program refers to it. So the way back is safe there, whatever the thread's
 * stack is and whatever other threads do; and to restore the gap, we write zeros. Only the process's own copy of the
 * page is written to.
 *
 * If an attacher dies, the way back stays, since its thread may still need it. A later attacher that finds that the
 * thread does not need it takes the place again.
 */
#ifndef NVTASKSET_ATTACH_GAP_H
#define NVTASKSET_ATTACH_GAP_H

#include "attach/machine.h"
#include "attach/target.h"

#include <stdint.h>
#include <sys/types.h>

/* Writes a way back for its owner into a gap. `thread` must be stopped, traced by us, and not in a gap itself. Returns
 * the address; 0 with errno, ENOSPC if there is no room. */
uint64_t gap_lay(const struct target *target, pid_t thread, const struct machine_way *way);

/* Notes in the way back the memory that the thread has for us: the way back is needed as long as that memory exists. -1
 * if the thread has ended. */
int gap_note_memory(pid_t thread, uint64_t way, uint64_t memory);

/* Restores the zeros. */
void gap_clear(pid_t thread, uint64_t way);

#endif
