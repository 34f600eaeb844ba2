/*
 * Where a thread's way back lies (machine.h): in a gap behind a library's code.
 *
 * A library's code ends somewhere within a page. The rest of that page is zero, can be run, and belongs to nobody: the
 * linker has put nothing there, and no program refers to it. So a thread finds its way back there whatever it has for a
 * stack, and whatever other threads do meanwhile; and what was there can be put back, which is nothing. Only the
 * process's own copy of the page is written to.
 *
 * When an attacher dies, the way back stays, since its thread may still need it. Its place is taken again by somebody who
 * finds that the thread does not.
 */
#ifndef NVTASKSET_ATTACH_GAP_H
#define NVTASKSET_ATTACH_GAP_H

#include "attach/machine.h"
#include "attach/target.h"

#include <stdint.h>
#include <sys/types.h>

/* Lays a way back for its owner, a thread that is stopped, ours to trace, and not in a gap itself. Its address; 0 with errno,
 * ENOSPC where there is no room. */
uint64_t gap_lay(const struct target *target, pid_t thread, const struct machine_way *way);

/* Notes that the thread has memory for us: as long as that is there, the way back is needed. -1 where the thread is gone. */
int gap_note_memory(pid_t thread, uint64_t way, uint64_t memory);

/* Puts back what was there. */
void gap_clear(pid_t thread, uint64_t way);

#endif
