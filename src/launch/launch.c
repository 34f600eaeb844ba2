#include "launch.h"

#include "driver/contexts.h"
#include "driver/gpus.h"
#include "driver/releases.h"
#include "launch/account/account.h"
#include "launch/account/escape.h"
#include "launch/account/looking.h"
#include "launch/graphs/counts.h"
#include "launch/graphs/descriptors.h"
#include "launch/graphs/looking.h"
#include "launch/space/app_masks.h"
#include "launch/space/decision.h"
#include "launch/space/epoch.h"
#include "launch/space/partition.h"
#include "launch/space/residency.h"
#include "launch/space/yielding.h"
#include "time/control.h"
#include "time/gate/gate.h"

/* This thread's last decision, cached: the next launch on the same context gets the same while nothing has changed. */
static __thread struct recent {
	CUcontext context;
	uint64_t epoch;                    /* EPOCH_NEVER: the next launch must be decided anew */
	uint64_t kept;                     /* it, outside of calls where the gate decides about these: for the next call */
	const struct qmd_release *release; /* of plain launches; NULL: none */
	qmd_disabler *disable;             /* NULL: the launch may use the whole GPU */
	bool is_aside;                     /* others have a part of the partition for now */
	struct qmd_mask mask;
} recent __attribute__((tls_model("initial-exec")));

/* --- carrying out a decision ---------------------------------------------------------------------------------------- */

/* Whether the driver's mask has nothing of the partition. If it steps aside, it may only have nothing of what is left. */
static bool is_outside(const struct launch *launch, const struct decision *decision)
{
	struct qmd_mask own = qmd_own_mask(launch->gpu->family, launch->qmd);
	struct tpcset theirs = topology_enabled(launch->gpu->topology, own.words);

	return !tpcset_overlap(&theirs, &decision->partition);
}

/* Descriptors are written only in this part of the file. */
static void write_mask(const struct launch *launch, struct decision *decision)
{
	const struct qmd_family *family = launch->gpu->family;
	bool tells = !decision->is_aside || is_outside(launch, decision);

	if (decision->is_exact)
		qmd_set_mask(family, launch->qmd, &decision->disable);
	else if (qmd_disable(family, launch->qmd, &decision->disable, NULL) == QMD_OVERRULED && tells)
		decision_note(decision, SEGMENT_GREEN_CONTEXT);
}

static inline void write_release(const struct qmd_release *release, void *qmd)
{
	enum qmd_release_outcome outcome = release ? qmd_release(release, qmd) : QMD_RELEASES;

	if (__builtin_expect(outcome != QMD_RELEASES, 0))
		account_uncounted_launch(outcome);
}

static const struct qmd_release *release_of(const struct launch *launch, enum counts_kind kind)
{
	return launch->releases && launch->releases->are_ready ? &launch->releases->of_kind[kind] : NULL;
}

static bool is_drivers_own(const struct launch *launch)
{
	const struct qmd_family *family = launch->gpu ? launch->gpu->family : NULL;

	return family && qmd_is_known(family, launch->qmd) && qmd_has_no_blocks(family, launch->qmd);
}

static enum graph_kernel write_release_of_node(const struct qmd_release *release, const struct launch *launch,
                                               enum counts_kind kind)
{
	enum qmd_release_outcome outcome = release ? qmd_release(release, launch->qmd) : QMD_NO_RELEASE_SLOTS;
	enum graph_kernel kernel = outcome == QMD_RELEASES ? GRAPH_COUNTED : GRAPH_UNCOUNTED;

	if (release && outcome != QMD_RELEASES)
		account_uncounted_node(outcome);
	if (kind == COUNTS_UNHEARD && outcome != QMD_RELEASES)
		account_node_gap(COUNTS_UNSEEN);
	return kind == COUNTS_NODE ? kernel : GRAPH_NO_KERNEL;
}

/* What watchers hear; 0 if it is not known. */
static unsigned int tpcs_of(const struct launch *launch, const struct decision *decision)
{
	const struct topology *topology = launch->gpu ? launch->gpu->topology : NULL;
	unsigned int tpcs = 0;

	if (decision->state == DECISION_RESTRICTED)
		tpcs = tpcset_count(&decision->set);
	else if (topology)
		tpcs = topology->tpc_count;
	return tpcs;
}

/* The driver uses a graph's descriptor again, so it is restored at the end of the call. Without memory for that, the mask is
 * written all the same, and the release is not. */
static void carry_out_node(const struct launch *launch, struct decision *decision, bool is_looked_at)
{
	enum counts_kind kind = graph_counts_kind(launch->origin.exec);
	bool is_own = is_drivers_own(launch);
	const struct qmd_release *release = is_own ? NULL : release_of(launch, kind);
	struct graph_descriptor *descriptor = graph_descriptors_remember(launch, release);

	if (decision->state == DECISION_RESTRICTED) {
		/* What is disabled now stays disabled. */
		if (!descriptor)
			escape_note(SEGMENT_STALE_GRAPH);
		write_mask(launch, decision);
	}
	if (!descriptor)
		account_node_gap(COUNTS_NO_MEMORY);
	else if (!is_own)
		descriptor->kernel = write_release_of_node(release, launch, kind);
	if (is_looked_at)
		looking_graph_node(launch, tpcs_of(launch, decision), descriptor);
	account_node(decision->state == DECISION_RESTRICTED);
}

/* The launch is counted before it can end. */
static void carry_out_launch(const struct launch *launch, struct decision *decision, bool is_looked_at)
{
	if (decision->state == DECISION_RESTRICTED)
		write_mask(launch, decision);
	account_launch(decision->state == DECISION_RESTRICTED);
	write_release(recent.release, launch->qmd);
	if (is_looked_at)
		looking_launch(launch, tpcs_of(launch, decision));
}

static void count_notes(const struct decision *decision)
{
	for (int reason = 0; reason < SEGMENT_REASON_COUNT; reason++) {
		if (decision->notes >> reason & 1)
			account_reason((enum segment_reason)reason);
	}
}

/* --- deciding ------------------------------------------------------------------------------------------------------- */

static void remember(const struct launch *launch, const struct decision *decision, uint64_t epoch)
{
	bool is_restricted = decision->state == DECISION_RESTRICTED;

	recent.context = launch->context;
	bool is_of_launch = decision->is_of_launch || launch->origin.uploads_nodes || gate_is_outside();

	recent.epoch = is_of_launch || decision->state == DECISION_UNRESTRICTED ? EPOCH_NEVER : epoch;
	recent.kept = EPOCH_NEVER;
	recent.release = release_of(launch, COUNTS_PLAIN);
	recent.disable = is_restricted ? launch->gpu->family->disable : NULL;
	recent.mask = decision->disable;
	recent.is_aside = decision->is_aside;
}

static void check_version(const struct launch *launch, struct decision *decision)
{
	if (decision->state != DECISION_RESTRICTED || qmd_is_known(launch->gpu->family, launch->qmd))
		return;
	if (decision->is_aside)
		decision_stay(decision, launch->gpu->topology);
	if (decision->state == DECISION_RESTRICTED)
		decision_leave_unrestricted(decision, SEGMENT_UNKNOWN_QMD);
}

static void look_up(struct launch *launch)
{
	struct context_facts facts = gpus_facts_of_context(launch->context);

	launch->gpu = facts.gpu;
	launch->releases = facts.releases;
	account_choose(facts.releases ? facts.releases->place : NULL);
	if (!facts.releases)
		account_older_context();
}

static __attribute__((noinline)) void decide(struct launch *launch)
{
	/* First: after a change from here on, the next launch is decided anew. */
	uint64_t epoch = epoch_now();
	bool is_looked_at = looking_is_on();
	struct decision decision;

	if (is_looked_at)
		epoch = EPOCH_NEVER;
	look_up(launch);
	control_check();
	/* The partition limits all others, and what is left of it while the program steps aside its own masks. Residency needs
	 * to know what is left of all, and can give back. */
	partition_decide(launch, &decision);
	yielding_decide(launch, &decision);
	app_masks_decide(launch, &decision);
	remember(launch, &decision, epoch);
	check_version(launch, &decision);
	residency_decide(launch, &decision);
	if (launch->origin.uploads_nodes)
		carry_out_node(launch, &decision, is_looked_at);
	else
		carry_out_launch(launch, &decision, is_looked_at);
	if (decision.state == DECISION_UNRESTRICTED)
		escape_note(decision.reason);
	count_notes(&decision);
}

/* --- the launch path ------------------------------------------------------------------------------------------------ */

static inline bool is_as_before(CUcontext context)
{
	return recent.context == context && epoch_now() == recent.epoch;
}

/* Unless the mask is written, the descriptor is unchanged: its blocks must run at once, or its version is unknown. */
static __attribute__((noinline)) void launch_slow_path(struct launch *launch, enum qmd_outcome outcome)
{
	if (outcome == QMD_OVERRULED && !recent.is_aside)
		account_reason(SEGMENT_GREEN_CONTEXT);
	if (outcome == QMD_OVERRULED || outcome == QMD_SLOT_LEFT) {
		account_launch(true);
		write_release(recent.release, launch->qmd);
	} else {
		decide(launch);
	}
}

static inline void disable_as_before(struct launch *launch)
{
	enum qmd_outcome outcome = recent.disable(launch->qmd, &recent.mask, recent.release);

	if (__builtin_expect(outcome == QMD_NARROWED, 1))
		account_launch(true);
	else
		launch_slow_path(launch, outcome);
}

/* Not inline: launch_upload would save more registers for it, in every launch. */
static __attribute__((noinline)) void count_as_before(const struct launch *launch)
{
	account_launch(false);
	write_release(recent.release, launch->qmd);
}

__attribute__((hot)) void launch_upload(struct launch *launch)
{
	if (__builtin_expect(!is_as_before(launch->context), 0))
		decide(launch);
	else if (recent.disable)
		disable_as_before(launch);
	else
		count_as_before(launch);
}

void launch_forget(void)
{
	recent.epoch = recent.kept = EPOCH_NEVER;
}

void launch_leave_call(void)
{
	if (recent.epoch != EPOCH_NEVER)
		recent.kept = recent.epoch;
	recent.epoch = EPOCH_NEVER;
}

void launch_enter_call(bool goes_elsewhere)
{
	if (goes_elsewhere)
		launch_forget();
	else if (recent.kept != EPOCH_NEVER)
		recent.epoch = recent.kept;
	recent.kept = EPOCH_NEVER;
}
