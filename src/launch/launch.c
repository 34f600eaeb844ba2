#include "launch.h"

#include "driver/contexts.h"
#include "driver/gpus.h"
#include "driver/releases.h"
#include "launch/account/account.h"
#include "launch/account/violation.h"
#include "launch/graphs/counts.h"
#include "launch/queued.h"
#include "launch/space/app_masks.h"
#include "launch/space/bells.h"
#include "launch/space/decision.h"
#include "launch/space/partition.h"
#include "launch/space/residency.h"
#include "launch/space/yielding.h"
#include "launch/timestamps/timestamps.h"
#include "time/control.h"

#include <string.h>

/* --- deciding ----------------------------------------------------------------------------------------------------- */

static const struct qmd_release *release_of(const struct launch *launch, enum counts_kind kind)
{
	return launch->releases->are_ready ? &launch->releases->of_kind[kind] : NULL;
}

/* Only if restricted. Most launches that are decided anew have the set of the thread's last launch, and its mask. */
static struct qmd_mask mask_of(const struct launch *launch, const struct decision *decision)
{
	const struct recent *recent = &launch->frame.recent;
	bool is_as_before = recent->gpu == launch->gpu && tpcset_equal(&recent->set, &decision->set);
	struct qmd_mask mask = recent->mask;

	if (decision->state == DECISION_RESTRICTED && !is_as_before)
		topology_disable_mask(launch->gpu->topology, &decision->set, mask.words, QMD_MASK_BITS);
	return mask;
}

/* For watchers; 0: not known. */
static unsigned int tpcs_of(const struct launch *launch, const struct decision *decision)
{
	unsigned int all = launch->gpu->topology ? launch->gpu->topology->tpc_count : 0;

	return decision->state == DECISION_RESTRICTED ? tpcset_count(&decision->set) : all;
}

/* The next launch on the same context gets the same while nothing has changed. */
static void remember(struct launch *launch, const struct decision *decision, uint64_t epoch)
{
	bool is_of_launch =
	    decision->is_of_launch || launch->frame.uploads_nodes || decision->state == DECISION_UNRESTRICTED;
	bool is_restricted = decision->state == DECISION_RESTRICTED;

	launch->frame.fitted.cluster = 0;
	launch->frame.recent = (struct recent){
		.context = launch->context,
		.epoch = is_of_launch ? EPOCH_NEVER : epoch,
		.release = release_of(launch, COUNTS_PLAIN),
		.disable = is_restricted ? launch->gpu->family->disable : NULL,
		.mask = mask_of(launch, decision),
		.is_yielding = decision->is_yielding,
		.has_own_mask = decision->has_own_mask,
		.rings = bells_are_there(),
		.tpcs = tpcs_of(launch, decision),
		.has_more = launch->frame.has_more,
		.more = launch->frame.more,
		.gpu = is_restricted ? launch->gpu : NULL,
		.set = decision->set,
	};
}

static void check_version(const struct launch *launch, struct decision *decision)
{
	const struct qmd_family *family = launch->gpu->family;

	if (decision->state != DECISION_RESTRICTED || qmd_is_known(family, launch->qmd))
		return;
	bool is_narrow = qmd_is_narrow(family, launch->qmd);

	if (decision->is_yielding)
		decision_stay(decision, launch->gpu->topology);
	if (decision->state == DECISION_RESTRICTED)
		decision_leave_unrestricted(decision, is_narrow ? SEGMENT_NARROW_QMD : SEGMENT_UNKNOWN_QMD);
}

/* --- carrying it out ---------------------------------------------------------------------------------------------- */

static struct qmd_change change_for(const struct decision *decision, const struct qmd_mask *mask,
                                    const struct qmd_release *counting)
{
	return (struct qmd_change){
		.disable = decision->state == DECISION_RESTRICTED ? mask : NULL,
		.is_exact = decision->is_exact,
		.counting = counting,
	};
}

/* The driver's mask had no TPC of the launch. With yielding, only a mask without any TPC of the partition counts. */
static void note_overruled(const struct launch *launch, struct decision *decision, const struct qmd_saved *saved)
{
	struct tpcset theirs = topology_enabled(launch->gpu->topology, saved->mask.words);

	if (!decision->is_yielding || !tpcset_overlap(&theirs, &decision->partition))
		decision_note(decision, SEGMENT_GREEN_CONTEXT);
}

/* The next launch with such clusters gets the same mask. */
static void remember_fitted(struct launch *launch, const struct decision *decision, const struct qmd_mask *mask,
                            const struct qmd_saved *saved)
{
	bool is_kept = decision->is_exact && launch->frame.recent.epoch != EPOCH_NEVER &&
	               launch->frame.refusal == CUDA_SUCCESS;
	unsigned int cluster = is_kept ? qmd_cluster(launch->gpu->family, launch->qmd) : 0;

	if (cluster > 0)
		launch->frame.fitted = (struct fitted){
			.cluster = (uint16_t)cluster,
			.own = saved->is_valid ? saved->mask : (struct qmd_mask){{0}},
			.mask = *mask,
			.tpcs = (uint16_t)tpcs_of(launch, decision),
			.has_own_mask = decision->has_own_mask,
			.notes = decision->notes,
		};
}

/* While a process looks at times, after the rest of the descriptor is written. The end of the look is noticed here. */
static __attribute__((noinline)) void stamp(struct launch *launch, unsigned int tpcs)
{
	queued_launch(launch, timestamps_of_launch(launch, tpcs, &launch->frame.recent.is_stamped));
}

/* What few launches do at last. */
static __attribute__((noinline)) void do_more(struct launch *launch, unsigned int tpcs)
{
	if (launch->frame.recent.rings)
		bells_ring();
	if (launch->frame.recent.is_stamped)
		stamp(launch, tpcs);
}

static inline bool has_more_to_do(const struct recent *recent)
{
	return recent->is_stamped | recent->rings;
}

static void carry_out_launch(struct launch *launch, struct decision *decision)
{
	struct qmd_mask mask = mask_of(launch, decision);
	struct qmd_change change = change_for(decision, &mask, release_of(launch, COUNTS_PLAIN));
	struct qmd_saved saved;
	struct qmd_outcomes outcomes = qmd_write(launch->gpu->family, launch->qmd, &change, &saved);

	if (outcomes.mask == QMD_OVERRULED)
		note_overruled(launch, decision, &saved);
	remember_fitted(launch, decision, &mask, &saved);
	stamp(launch, tpcs_of(launch, decision));
	account_launch_anew(launch->releases, change.disable);
	if (launch->frame.recent.rings)
		bells_ring();
	if (change.counting && outcomes.counting != QMD_RELEASES)
		account_uncounted_launch(launch->releases, outcomes.counting);
}

static inline void count_and_release(const struct launch *launch, bool is_restricted)
{
	const struct qmd_release *release = launch->frame.recent.release;
	enum qmd_release_outcome outcome = release ? qmd_release(release, launch->qmd) : QMD_RELEASES;

	account_launch(launch->releases, is_restricted);
	if (__builtin_expect(outcome != QMD_RELEASES, 0))
		account_uncounted_launch(launch->releases, outcome);
}

/* A launch with clusters gets the mask of the last such launch, if clusters and mask of the driver are the same. */
static bool fit_as_before(struct launch *launch)
{
	const struct qmd_family *family = launch->gpu->family;
	struct qmd_mask own = qmd_own_mask(family, launch->qmd);
	unsigned int cluster = qmd_cluster(family, launch->qmd);
	const struct fitted *fitted = &launch->frame.fitted;
	bool fits = cluster > 0 && fitted->cluster == cluster && memcmp(&fitted->own, &own, sizeof own) == 0;

	if (fits) {
		const struct qmd_change change = {.disable = &fitted->mask, .is_exact = true};

		qmd_write(family, launch->qmd, &change, NULL);
		count_and_release(launch, true);
		if (has_more_to_do(&launch->frame.recent))
			do_more(launch, fitted->tpcs);
		if (fitted->notes != 0)
			account_reasons(fitted->notes);
	}
	return fits;
}

/* --- nodes of graphs ---------------------------------------------------------------------------------------------- */

static bool is_drivers_own(const struct launch *launch)
{
	const struct qmd_family *family = launch->gpu->family;

	return family && qmd_is_known(family, launch->qmd) && qmd_has_no_blocks(family, launch->qmd);
}

/* How a launch of the graph counts the node, unless the node is the driver's own. */
static enum graph_kernel account_release(const struct launch *launch, enum counts_kind kind,
                                         const struct qmd_release *release, enum qmd_release_outcome outcome)
{
	if (release && outcome != QMD_RELEASES)
		account_uncounted_node(launch->releases, outcome);
	if (kind == COUNTS_UNHEARD && outcome != QMD_RELEASES)
		account_node_gap(launch->releases, COUNTS_UNSEEN);
	if (kind != COUNTS_NODE)
		return GRAPH_NO_KERNEL;
	return outcome == QMD_RELEASES ? GRAPH_COUNTED : GRAPH_UNCOUNTED;
}

/* The driver uses a graph's descriptor again, so the descriptor is restored at the end of the call. Without memory, the
 * mask is written all the same, and TPCs disabled now stay disabled; a release is not written. */
static void carry_out_node(struct launch *launch, struct decision *decision)
{
	enum counts_kind kind = graph_counts_kind(&launch->frame);
	struct graph_descriptor unsaved, *remembered = graph_counts_remember(launch);
	struct graph_descriptor *descriptor = remembered ? remembered : &unsaved; // cppcheck-suppress uninitvar
	bool is_own = is_drivers_own(launch);
	struct qmd_mask mask = mask_of(launch, decision);
	struct qmd_change change =
	    change_for(decision, &mask, remembered && !is_own ? release_of(launch, kind) : NULL);

	change.fetches_ahead = launch->frame.refreshes && launch->gpu->family;
	if (remembered)
		timestamps_graph_node(launch, tpcs_of(launch, decision), &change);
	struct qmd_outcomes outcomes = qmd_write(launch->gpu->family, launch->qmd, &change, &descriptor->saved);

	if (outcomes.mask == QMD_OVERRULED)
		note_overruled(launch, decision, &descriptor->saved);
	account_node(launch->releases, change.disable);
	if (remembered && !is_own)
		descriptor->kernel = account_release(launch, kind, change.counting, outcomes.counting);
	else if (!remembered)
		account_node_gap(launch->releases, COUNTS_NO_MEMORY);
	if (!remembered && change.disable)
		violation_note(SEGMENT_STALE_GRAPH);
}

/* --- both --------------------------------------------------------------------------------------------------------- */

static void carry_out(struct launch *launch, struct decision *decision)
{
	residency_decide(launch, decision);
	if (launch->frame.uploads_nodes)
		carry_out_node(launch, decision);
	else
		carry_out_launch(launch, decision);
	if (decision->state == DECISION_UNRESTRICTED)
		violation_note(decision->reason);
	if (decision->notes != 0)
		account_reasons(decision->notes);
}

static __attribute__((noinline)) void decide_launch(struct launch *launch)
{
	/* First: after a change from here on, the next launch is decided anew. */
	uint64_t epoch = epoch_now(), edits = epoch_of_edits();
	struct context_facts facts = contexts_find(launch->context);
	struct decision decision;

	launch->edits = edits;
	launch->gpu = facts.gpu;
	launch->releases = facts.releases ? facts.releases : &releases_unknown;
	control_check(edits);
	/* The partition limits all deciders. What yielding leaves limits the program's masks. Residency needs all
	 * results, and can give TPCs back; it concerns this launch only, and so comes after remember(). */
	partition_decide(launch, &decision);
	yielding_decide(launch, &decision);
	app_masks_decide(launch, &decision);
	remember(launch, &decision, epoch);
	check_version(launch, &decision);
	carry_out(launch, &decision);
}

/* --- the launch path ---------------------------------------------------------------------------------------------- */

static inline bool is_as_before(const struct recent *recent, CUcontext context)
{
	return recent->context == context && epoch_now() == recent->epoch;
}

/* If the mask is not written, the descriptor is unchanged: the blocks must run at once, or the version is unknown. */
static __attribute__((noinline)) void launch_slow_path(struct launch *launch, enum qmd_outcome outcome)
{
	if (outcome == QMD_OVERRULED && !launch->frame.recent.is_yielding)
		account_reason(SEGMENT_GREEN_CONTEXT);
	if (outcome == QMD_OVERRULED || outcome == QMD_SLOT_LEFT) {
		count_and_release(launch, true);
		if (has_more_to_do(&launch->frame.recent))
			do_more(launch, launch->frame.recent.tpcs);
	} else if (outcome != QMD_MUST_FIT || !fit_as_before(launch)) {
		decide_launch(launch);
	}
}

static inline void disable_as_before(struct launch *launch)
{
	const struct recent *recent = &launch->frame.recent;
	enum qmd_outcome outcome = recent->disable(launch->qmd, &recent->mask, recent->release);

	if (__builtin_expect(outcome != QMD_NARROWED, 0)) {
		launch_slow_path(launch, outcome);
	} else {
		account_launch(launch->releases, true);
		if (__builtin_expect(has_more_to_do(recent), 0))
			do_more(launch, launch->frame.recent.tpcs);
	}
}

/* Not inline: launch_upload would save more registers for it, in every launch. */
static __attribute__((noinline)) void count_as_before(struct launch *launch)
{
	count_and_release(launch, false);
	if (has_more_to_do(&launch->frame.recent))
		do_more(launch, launch->frame.recent.tpcs);
}

__attribute__((hot)) void launch_upload(struct launch *launch)
{
	if (__builtin_expect(!is_as_before(&launch->frame.recent, launch->context), 0))
		decide_launch(launch);
	else if (launch->frame.recent.disable)
		disable_as_before(launch);
	else
		count_as_before(launch);
}

void launch_forget(struct frame *frame)
{
	frame->recent.epoch = EPOCH_NEVER;
}

/* --- another subscriber had the descriptor ------------------------------------------------------------------------ */

struct qmd_mask launch_mask(const struct launch *launch)
{
	const struct qmd_family *family = launch->frame.recent.gpu ? launch->gpu->family : NULL;
	bool is_restricted = family && qmd_is_known(family, launch->qmd);

	return is_restricted ? qmd_own_mask(family, launch->qmd) : (struct qmd_mask){{0}};
}

/* Without room in the intersection, the launch would never end: then the first mask holds alone. Blocks that must run
 * at once may have room in each of two masks, and none in the intersection. */
void launch_keep_mask(struct launch *launch, const struct qmd_mask *mask)
{
	struct qmd_mask changed = launch_mask(launch), both;
	bool leaves = false, has_room = false;

	for (unsigned int i = 0; i < sizeof both.words / sizeof *both.words; i++) {
		uint64_t present = launch->gpu->present.words[i];

		both.words[i] = changed.words[i] | mask->words[i];
		leaves |= (~changed.words[i] & mask->words[i] & present) != 0;
		has_room |= (~both.words[i] & present) != 0;
	}
	has_room = has_room && leaves && !residency_must_fit(launch);
	if (memcmp(&changed, mask, sizeof changed) != 0)
		launch->frame.keeps_mask = true;
	if (leaves) {
		const struct qmd_change change = {.disable = has_room ? &both : mask, .is_exact = true};

		qmd_write(launch->gpu->family, launch->qmd, &change, NULL);
	}
	if (leaves && !has_room)
		account_reason(SEGMENT_OWN_MASK);
}
