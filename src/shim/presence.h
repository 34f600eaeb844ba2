/*
 * When this process is present on its GPUs: what edits and the program itself do about that. Presence is limited by a thread
 * of ours (presence_thread.h), which exists only in programs that were given something in time. By files:
 *
 *   rules.h            who wants the program aside, and until when: its quota (quota.h), and others on its GPUs (priority.h,
 *                      weight.h); the bound of all that (bound.h)
 *   held.h             the same for clients of MPS, whose launches are held back instead
 *   neighbours.h       who these others are
 *   aside.h            how it is put aside, and whether that has an effect; slices.h: how it runs for shorter times at once;
 *                      reaching.h: the way to do so
 *   obstacle.h         why it is never put aside any more; memory_use.h: what it does with memory may be such a reason
 *   sight.h            whether it wants to run
 *
 * A program that is held itself while it is put aside (SIGSTOP, a frozen control group, a debugger) stays aside until it goes
 * on, since its thread is held, too: work that was in flight waits, for nobody else. The kernel driver takes nothing back by
 * itself. Only a task outside of the program's thread group could. Tried (clone with CLONE_VM and CLONE_FILES, no signal at its
 * end): it is stopped with the program's process group unless it leaves the session, and frozen with its control group; waitpid
 * with __WALL finds it; it keeps rights that the program gives up, and then outlives the program, whose death may not signal it;
 * it outlives an exec with the old memory and descriptors. That is worse.
 */
#ifndef NVTASKSET_SHIM_PRESENCE_H
#define NVTASKSET_SHIM_PRESENCE_H

#include "driver/calls.h"
#include "state/segment.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* From here on, the quota is this segment's. Only while no thread uses the driver: at the start, and in the child of a fork
 * after presence_after_fork. */
void presence_use(const struct segment *segment);

/* The library is at work. With a quota, the driver's calls of the kernel driver are watched from here on. `is_late`: the
 * program has used the driver before; this calls it. */
void presence_start(bool is_late);

/* Before a launch is decided, and in some calls: an edit may have given a quota. */
struct presence_news {
	const struct segment *segment; /* NULL: nobody asks */
	_Atomic uint64_t seen;         /* the number of the revision that was looked at */
};
extern struct presence_news presence_news __attribute__((visibility("hidden")));
void presence_look(void);

static inline void presence_check(void)
{
	const struct segment *segment = presence_news.segment;

	if (segment && segment_revision_number(segment) != atomic_load_explicit(&presence_news.seen, memory_order_relaxed))
		presence_look();
}

void presence_context_created(void);
void presence_context_destroyed(void);

/* Calls after which the program is not put aside any more: it is back when they begin. */
bool presence_wants_call(int id);
void presence_call_begins(const struct call *call);

/* The code of one of the program's modules is loaded. */
void presence_module_loaded(const void *cubin, size_t size);

/* In the child of a fork. */
void presence_after_fork(void);

#endif
