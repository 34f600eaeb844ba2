#include "launch.h"

#include "account.h"
#include "app_masks.h"
#include "decision.h"
#include "driver/contexts.h"
#include "driver/functions.h"
#include "driver/gpus.h"
#include "epoch.h"
#include "escape.h"
#include "graph_descriptors.h"
#include "graphs.h"
#include "hide.h"
#include "misfit.h"
#include "partition.h"
#include "residency.h"

#include <stdatomic.h>

/* This thread's last decision, cached: the next launch on the same context gets the same while nothing has changed. */
static __thread struct recent {
	CUcontext context;
	uint64_t epoch;        /* EPOCH_NEVER: the next launch must be decided anew */
	qmd_disabler *disable; /* NULL: the launch may use the whole GPU */
	struct qmd_mask mask;
} recent __attribute__((tls_model("initial-exec")));

/* --- carrying out a decision ---------------------------------------------------------------------------------------- */

static void count(const struct decision *decision)
{
	for (int reason = 0; reason < SEGMENT_REASON_COUNT; reason++) {
		if (decision->notes >> reason & 1)
			account_reason((enum segment_reason)reason);
	}
	account_launch(decision->state == DECISION_RESTRICTED);
}

/* Descriptors are written only here and in disable_as_before. */
static void write_descriptor(const struct launch *launch, struct decision *decision)
{
	const struct qmd_family *family = launch->gpu->family;

	/* The driver uses a graph's descriptor again: it is restored at the end of the call. */
	if (launch->origin.uploads_nodes)
		graph_descriptors_remember(family, launch->qmd);
	if (decision->is_exact)
		qmd_set_mask(family, launch->qmd, &decision->disable);
	else if (qmd_disable(family, launch->qmd, &decision->disable, NULL) == QMD_OVERRULED)
		decision_note(decision, SEGMENT_GREEN_CONTEXT);
}

/* --- deciding ------------------------------------------------------------------------------------------------------- */

static void remember(const struct launch *launch, const struct decision *decision, uint64_t epoch)
{
	bool is_restricted = decision->state == DECISION_RESTRICTED;

	recent.context = launch->context;
	recent.epoch = decision->is_of_launch || decision->state == DECISION_UNRESTRICTED ||
	                               (is_restricted && launch->origin.uploads_nodes)
	                       ? EPOCH_NEVER
	                       : epoch;
	recent.disable = is_restricted ? launch->gpu->family->disable : NULL;
	recent.mask = decision->disable;
}

static void check_version(const struct launch *launch, struct decision *decision)
{
	if (decision->state == DECISION_RESTRICTED && !qmd_is_known(launch->gpu->family, launch->qmd))
		decision_leave_unrestricted(decision, SEGMENT_UNKNOWN_QMD);
}

static __attribute__((noinline)) void decide(struct launch *launch)
{
	/* First: after a change from here on, the next launch is decided anew. */
	uint64_t epoch = epoch_now();
	struct decision decision;

	launch->gpu = gpus_of_context(launch->context);
	/* The partition limits the program's own masks. Residency needs to know what is left. */
	partition_decide(launch, &decision);
	app_masks_decide(launch, &decision);
	remember(launch, &decision, epoch);
	check_version(launch, &decision);
	residency_decide(launch, &decision);
	if (decision.state == DECISION_RESTRICTED)
		write_descriptor(launch, &decision);
	else if (decision.state == DECISION_UNRESTRICTED)
		escape_note(decision.reason);
	count(&decision);
}

/* --- the launch path ------------------------------------------------------------------------------------------------ */

static inline bool is_as_before(CUcontext context)
{
	return recent.context == context && recent.epoch == epoch_now();
}

/* Overruled: the mask is written. Otherwise the descriptor is unchanged: its blocks must run at once, or its version is
 * unknown. */
static __attribute__((noinline)) void launch_slow_path(struct launch *launch, enum qmd_outcome outcome)
{
	if (outcome == QMD_OVERRULED) {
		account_reason(SEGMENT_GREEN_CONTEXT);
		account_launch(true);
	} else {
		decide(launch);
	}
}

static inline void disable_as_before(struct launch *launch)
{
	enum qmd_outcome outcome = recent.disable(launch->qmd, &recent.mask, NULL);

	if (__builtin_expect(outcome == QMD_NARROWED, 1))
		account_launch(true);
	else
		launch_slow_path(launch, outcome);
}

__attribute__((hot)) void launch_upload(struct launch *launch)
{
	if (__builtin_expect(!is_as_before(launch->context), 0))
		decide(launch);
	else if (recent.disable)
		disable_as_before(launch);
	else
		account_launch(false);
}

/* --- calls around launches ------------------------------------------------------------------------------------------ */

/* There is a GPU whose descriptors do not say that blocks must run at once: those calls say it. */
static atomic_bool before_hopper;

static bool asks_to_run_at_once(int id)
{
	return atomic_load(&before_hopper) && calls_may_launch_at_once(id);
}

bool launch_wants_call(int id)
{
	return calls_are_of_graphs(id) ? driver_has_graphs()
	                               : hide_wants_call(id) || misfit_wants_call(id) || app_masks_want_call(id) ||
	                                         asks_to_run_at_once(id);
}

/* Graphs come first: to refresh one, we call the driver, and another tool that hears of that call may launch kernels
 * that do not belong to the graph. Misfits come last: they may change the call's arguments, which the hook reads after
 * this. */
void launch_call_begins(const struct call *call)
{
	if (calls_are_of_graphs(call->id))
		graphs_call_begins(call);
	if (app_masks_want_call(call->id))
		app_masks_call_begins(call);
	if (misfit_wants_call(call->id))
		misfit_call_begins(call);
	recent.epoch = EPOCH_NEVER;
}

/* Nothing is launched any more, so the order does not matter here. graphs_call_ended restores descriptors before all
 * else. */
void launch_call_ended(const struct call *call)
{
	if (misfit_wants_call(call->id))
		misfit_call_ended(call);
	if (app_masks_want_call(call->id))
		app_masks_call_ended(call);
	if (hide_wants_call(call->id))
		hide_call_ended(call);
	if (calls_are_of_graphs(call->id))
		graphs_call_ended(call);
}

/* --- contexts ------------------------------------------------------------------------------------------------------- */

static bool finds_first_before_hopper(void)
{
	return gpus_some_before_hopper() && !atomic_exchange(&before_hopper, true);
}

/* Right after this, the hook asks which calls we want. */
void launch_subscribed(bool is_late)
{
	if (is_late)
		finds_first_before_hopper();
}

/* The topology is read here: outside the launch path, and the GPU is awake. */
void launch_context_created(CUcontext context)
{
	contexts_forget(context);
	epoch_raise();
	gpus_prepare();
	if (finds_first_before_hopper())
		hook_want_more();
}

void launch_context_destroyed(CUcontext context)
{
	contexts_forget(context);
	epoch_raise();
}
