/*
 * Time control: what edits and the program itself do about the time that it was given. A thread of ours keeps it (thread.h), which
 * exists only in programs that were given something in time, or whose neighbour has a number (time/demand/company.h). By files:
 *
 *   rules/             pure: whether the program is to be suspended, for its quota, for a higher priority, for its weight
 *   turns/             how that is done without MPS: channels suspended, time slices set
 *   time/demand/given.h            which rules, and on which account they are kept
 *   time/demand/peers.h            the other programs on its GPUs; time/demand/demand.h: what each has in flight; time/demand/work.h: the program itself
 *
 * A program that is stopped itself while it is suspended (SIGSTOP, a frozen control group, a debugger) stays suspended
 * until it goes on, since its thread is stopped as well: work that was in flight waits, and no other program waits for
 * it. The kernel driver resumes nothing by itself. Only a task outside of the program's thread group could. Tried (clone
 * with CLONE_VM and CLONE_FILES, no signal at its end): it is stopped with the program's process group unless it leaves
 * the session, and frozen with its control group; waitpid with __WALL finds it; it keeps rights that the program gives
 * up, and then outlives the program, whose death may not signal it; it outlives an exec with the old memory and
 * descriptors. That is worse.
 */
#ifndef NVTASKSET_TIME_CONTROL_H
#define NVTASKSET_TIME_CONTROL_H

#include "driver/calls.h"
#include "state/segment/segment.h"
#include "time/demand/wakeup.h"

#include <stdbool.h>
#include <stddef.h>

/* From here on, the quota is this segment's. Only while no thread uses the driver: at the start, and in the child of a fork
 * after control_after_fork. */
void control_use(const struct segment *segment);

/* The library is at work. With a quota, the driver's calls of the kernel driver are watched from here on. `is_late`: the
 * program has used the driver before; this calls it. */
void control_start(bool is_late);

/* Before a launch is decided, and in some calls: an edit may have given a quota; and our thread may have asked. `number`: of the
 * segment's revision now. */
void control_look(void);

static inline void control_check(uint64_t number)
{
	if (time_news.segment && number != atomic_load_explicit(&time_news.seen, memory_order_relaxed))
		control_look();
}

void control_context_created(void);
void control_context_destroyed(void);

/* Calls after which the program is not suspended any more: it is resumed when they begin. While our thread exists, calls that
 * synchronize are among them: these say that a context has failed (shim/events.c). */
bool control_wants_call(int id);
void control_call_begins(const struct call *call);

/* The code of one of the program's modules is loaded. */
void control_module_loaded(const void *cubin, size_t size);

/* In the child of a fork. */
void control_after_fork(void);

#endif
