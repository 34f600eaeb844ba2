/*
 * Time control: edits, the program's calls, and the rules in time. Our thread keeps the rules (thread.h), and exists
 * only in programs with rules in time, or a neighbour with a priority or a weight (time/demand/company.h). By files:
 *
 *   rules/              pure: whether to suspend the program, for its quota, a higher priority, its weight
 *   turns/              the means without MPS: channels suspended, time slices set
 *   demand/given.h      the rules of the program, and the accounts of the rules
 *   demand/peers.h      the other programs on its GPUs; demand.c: the work of each; work.h: the work of the program
 *
 * A program that is stopped while suspended (SIGSTOP, a frozen control group, a debugger) stays suspended until the
 * program goes on, since our thread is stopped as well: work in flight waits, and no other program waits for the work.
 * The kernel driver resumes nothing by itself. Only a task outside of the program's thread group could resume. Tried
 * (clone with CLONE_VM and CLONE_FILES, no signal at the end): the task is stopped with the program's process group
 * unless the task leaves the session, and frozen with the control group; waitpid with __WALL finds the task; the task
 * keeps rights that the program gives up, and then outlives the program, whose death may not signal the task; the task
 * outlives an exec with the old memory and descriptors. Stopped work is the lesser evil.
 */
#pragma once

#include "driver/calls.h"
#include "state/segment/segment.h"
#include "time/demand/wakeup.h"

#include <stdbool.h>
#include <stddef.h>

/* From here on, the rules are from `segment`. Only while no thread uses the driver: at the start, and in the child of
 * a fork after control_after_fork. */
void control_use(const struct segment *segment);

/* The library is at work. With rules, the driver's calls of the kernel driver are watched from here on. `is_late`: the
 * program has used the driver before; control_start calls the driver. */
void control_start(bool is_late);

/* Before the decision about a launch, and in some calls: an edit may have given rules, or our thread may have asked. */
void control_look(void);

/* `number`: of the segment's revision now. */
static inline void control_check(uint64_t number)
{
	if (time_news.segment && number != atomic_load_explicit(&time_news.seen, memory_order_relaxed))
		control_look();
}

void control_context_created(void);

/* The calls to listen to. Calls with managed or shared memory end all suspensions, at the begin of the call. While our
 * thread exists, calls that synchronize count too: they tell of a kernel's fault (shim/events.c). But not under MPS,
 * where a fault ends the work of all clients. */
bool control_wants_call(int id);
void control_call_begins(const struct call *call);

/* The code of a module of the program is loaded. */
void control_module_loaded(const void *cubin, size_t size);

/* In the child of a fork. */
void control_after_fork(void);
