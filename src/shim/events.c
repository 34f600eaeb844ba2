#include "shim.h"

#include "driver/contexts.h"
#include "driver/functions.h"
#include "driver/gpus.h"
#include "driver/pushbuffer/queue.h"
#include "driver/releases.h"
#include "launch/account/streams_made.h"
#include "launch/graphs/graphs.h"
#include "launch/launch.h"
#include "launch/queued.h"
#include "launch/space/app_masks.h"
#include "launch/space/epoch.h"
#include "launch/space/hide.h"
#include "launch/space/residency.h"
#include "memory/memory.h"
#include "time/control.h"
#include "time/gate/gate.h"

#include <stdatomic.h>

/* --- calls around launches ---------------------------------------------------------------------------------------- */

/* A GPU's descriptors do not say that blocks must run at once: only the calls do. */
static atomic_bool before_hopper;

enum listener {
	CONTROL = 1 << 0,
	QUEUED = 1 << 1,
	GATE = 1 << 2,
	MEMORY = 1 << 3,
	GRAPHS = 1 << 4,
	MASKS = 1 << 5,
	RESIDENCY = 1 << 6,
	AT_ONCE = 1 << 7, /* launch/launch.c reads the frame */
	STREAMS = 1 << 8,
	HIDE = 1 << 9,
};

/* Listeners that may change the next decision about a launch. */
#define DECIDE_ANEW (GRAPHS | MASKS | RESIDENCY | AT_ONCE)

unsigned int events_want_call(int id)
{
	bool is_of_graphs = calls_are_of_graphs(id);

	/* An instance is never known then, but the launches are: a node may keep an older partition. */
	if (is_of_graphs && !driver_has_graphs() && !calls_use_instance(id))
		return 0;
	return (control_wants_call(id) ? CONTROL : 0) | (queued_wants_call(id) ? QUEUED : 0) |
	       (gate_wants_call(id) ? GATE : 0) | (memory_may_want_call(id) ? MEMORY : 0) |
	       (is_of_graphs ? GRAPHS : 0) | (app_masks_want_call(id) ? MASKS : 0) |
	       (residency_wants_call(id) ? RESIDENCY : 0) |
	       (atomic_load(&before_hopper) && calls_may_launch_at_once(id) ? AT_ONCE : 0) |
	       (streams_made_wants_call(id) ? STREAMS : 0) | (hide_wants_call(id) ? HIDE : 0);
}

/* The gate comes before all decisions about a launch: decisions may change while the launch waits there. Graphs come
 * before masks: to refresh a graph, we call the driver, which announces the upload like a launch, before the call's own
 * launch. Misfits come last: a misfit may change the call's arguments, which the hook reads afterwards. */
void events_call_begins(const struct call *call)
{
	unsigned int by = call->wanted_by;

	if (by & CONTROL)
		control_call_begins(call);
	if (by & QUEUED)
		queued_call_begins(call);
	if (by & GATE) {
		gate_call_begins(call);
		launch_enter_call(call->frame);
	}
	if (by & MEMORY && memory_wants_call(call->id))
		memory_call_begins(call);
	if (by & GRAPHS)
		graphs_call_begins(call);
	if (by & MASKS)
		app_masks_call_begins(call);
	if (by & RESIDENCY)
		residency_call_begins(call);
	if (by & DECIDE_ANEW)
		launch_forget(call->frame);
}

/* Of a kernel: no context of the process launches anything any more. */
static bool is_fault(CUresult result)
{
	return result == CUDA_ERROR_ILLEGAL_ADDRESS || result == CUDA_ERROR_LAUNCH_TIMEOUT ||
	       result == CUDA_ERROR_ASSERT ||
	       (result >= CUDA_ERROR_HARDWARE_STACK_ERROR && result <= CUDA_ERROR_LAUNCH_FAILED);
}

static void others_ended(const struct call *call)
{
	unsigned int by = call->wanted_by;

	if (by & RESIDENCY)
		residency_call_ended(call);
	if (by & MASKS)
		app_masks_call_ended(call);
	if (by & STREAMS)
		streams_made_call_ended(call);
	if (by & HIDE)
		hide_call_ended(call);
	if (by & GRAPHS)
		graphs_call_ended(call);
	if (by & MEMORY && memory_wants_call(call->id))
		memory_call_ended(call);
}

/* The context launches nothing any more, and work in flight never ends. */
static void forget_context(CUcontext context)
{
	queue_forget_context(context);
	streams_made_context_destroyed();
	releases_context_destroyed(context);
	contexts_forget(context);
	epoch_raise();
}

/* The gate comes last: graphs say which work was launched. */
void events_call_ended(const struct call *call)
{
	if (call->wanted_by & ~(unsigned int)(CONTROL | QUEUED | GATE))
		others_ended(call);
	if (call->wanted_by & GATE) {
		gate_call_ended(call);
		launch_leave_call(call->frame);
	}
	/* Contexts have memory until somebody destroys the contexts. */
	if (is_fault(*call->result))
		contexts_visit(forget_context);
}

/* --- launches ----------------------------------------------------------------------------------------------------- */

void events_submits(struct launch *last, const struct submission *submission)
{
	struct launch_end end = queued_submits(last, submission);

	if (end.number != 0)
		gate_submits(last, submission, end);
}

/* --- contexts ----------------------------------------------------------------------------------------------------- */

static bool finds_first_before_hopper(void)
{
	return gpus_some_before_hopper() && !atomic_exchange(&before_hopper, true);
}

/* Right afterwards, the hook asks for the calls that we want. */
void events_subscribed(bool is_late)
{
	if (is_late) {
		finds_first_before_hopper();
		releases_find_older();
		memory_find_older();
	}
}

/* The topology is read here: outside the launch path, and the GPU is awake. */
void events_context_created(CUcontext context)
{
	contexts_forget(context);
	epoch_raise();
	gpus_prepare();
	releases_context_created(context);
	queue_context_created();
	if (finds_first_before_hopper())
		hook_want_more();
}

void events_context_destroyed(CUcontext context)
{
	memory_context_destroyed(context);
	forget_context(context);
}
