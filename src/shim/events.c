#include "events.h"

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

/* --- calls around launches ------------------------------------------------------------------------------------------ */

/* There is a GPU whose descriptors do not say that blocks must run at once: those calls say it. */
static atomic_bool before_hopper;

static bool asks_to_run_at_once(int id)
{
	return atomic_load(&before_hopper) && calls_may_launch_at_once(id);
}

static bool some_want_call(int id)
{
	return calls_are_of_graphs(id) ? driver_has_graphs()
	                               : gate_wants_call(id) || queued_wants_call(id) || control_wants_call(id) ||
	                                         hide_wants_call(id) || residency_wants_call(id) ||
	                                         app_masks_want_call(id) || asks_to_run_at_once(id) ||
	                                         streams_made_wants_call(id) || memory_wants_call(id);
}

/* Kernels without further wishes are most calls, where anybody listens. */
bool events_want_call(int id)
{
	return (calls_launch_kernel(id) && gate_wants_call(id)) || some_want_call(id);
}

/* Launches that nobody but the gate listens to, as it does in clients of MPS: most calls. */
static inline bool is_for_gate_alone(int id)
{
	bool may_be = calls_launch_kernel(id) || (calls_may_launch_at_once(id) && !residency_wants_call(id) && !asks_to_run_at_once(id));

	return may_be && gate_wants_call(id) && !atomic_load_explicit(&app_masks_want_calls, memory_order_relaxed);
}

/* Graphs come first: to refresh a graph, we call the driver. Then the driver announces the upload like a launch, before
 * the call's own. Misfits come last: they may change the call's arguments, which the hook reads after this. */
static void others_begin(const struct call *call)
{
	if (calls_are_of_graphs(call->id))
		graphs_call_begins(call);
	if (app_masks_want_call(call->id))
		app_masks_call_begins(call);
	if (residency_wants_call(call->id))
		residency_call_begins(call);
	if (!calls_synchronize(call->id)) /* synchronizations launch nothing, and come often */
		launch_forget(call->frame);
}

/* The gate comes before all that is decided about a launch: while the launch waits there, that may change. */
static void begins_for_all(const struct call *call)
{
	control_call_begins(call);
	if (queued_wants_call(call->id))
		queued_call_begins(call);
	if (gate_wants_call(call->id))
		gate_call_begins(call);
	launch_enter_call(call->frame);
	if (memory_wants_call(call->id))
		memory_call_begins(call);
	others_begin(call);
}

void events_call_begins(const struct call *call)
{
	if (is_for_gate_alone(call->id)) {
		gate_call_begins(call);
		launch_enter_call(call->frame);
	} else if (memory_alone_wants_call(call->id)) {
		memory_call_begins(call);
	} else {
		begins_for_all(call);
	}
}

/* Of a kernel: its context launches nothing any more. */
static bool is_fault(CUresult result)
{
	return result == CUDA_ERROR_ILLEGAL_ADDRESS || result == CUDA_ERROR_LAUNCH_TIMEOUT || result == CUDA_ERROR_ASSERT ||
	       (result >= CUDA_ERROR_HARDWARE_STACK_ERROR && result <= CUDA_ERROR_LAUNCH_FAILED);
}

static void others_ended(const struct call *call)
{
	if (memory_alone_wants_call(call->id)) {
		memory_call_ended(call);
		return;
	}
	if (residency_wants_call(call->id))
		residency_call_ended(call);
	if (app_masks_want_call(call->id))
		app_masks_call_ended(call);
	if (streams_made_wants_call(call->id))
		streams_made_call_ended(call);
	if (hide_wants_call(call->id))
		hide_call_ended(call);
	if (calls_are_of_graphs(call->id))
		graphs_call_ended(call);
	if (memory_wants_call(call->id))
		memory_call_ended(call);
}

/* The gate comes last: graphs say what was launched. What was in flight in a context that has failed never ends. */
void events_call_ended(const struct call *call)
{
	bool is_synchronization = calls_synchronize(call->id);

	if (!is_synchronization && !is_for_gate_alone(call->id))
		others_ended(call);
	if (is_synchronization)
		gate_synchronized(call);
	else if (gate_wants_call(call->id))
		gate_call_ended(call);
	launch_leave_call(call->frame);
	if (call->context && is_fault(*call->result))
		events_context_destroyed(call->context);
}

/* --- launches ------------------------------------------------------------------------------------------------------- */

void events_submits(struct launch *last, const struct submission *submission)
{
	struct launch_end end = queued_submits(last, submission);

	if (end.number != 0)
		gate_submits(last, end);
}

/* --- contexts ------------------------------------------------------------------------------------------------------- */

static bool finds_first_before_hopper(void)
{
	return gpus_some_before_hopper() && !atomic_exchange(&before_hopper, true);
}

/* Right after this, the hook asks which calls we want. */
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
	queue_forget_context(context);
	streams_made_context_destroyed();
	memory_context_destroyed(context);
	releases_context_destroyed(context);
	contexts_forget(context);
	epoch_raise();
}
