#include "enforce.h"

#include "contexts.h"
#include "fit.h"
#include "gpus.h"
#include "graphs.h"
#include "log.h"
#include "misfit.h"
#include "streams.h"
#include "strict.h"

#include <string.h>

static struct segment segment;

/* How often a mask has changed otherwise than by an edit of the segment, or a context come or gone. */
static _Atomic uint64_t changes;

/* What the last launch of this thread went by: the next one on the same context does, too, while nothing has changed. Close
 * together, with where the thread counts its launches: what a launch takes is mostly waiting for the cache. */
static __thread struct recent {
	CUcontext context;           /* NULL where there is none */
	uint64_t changes;            /* as many as there were */
	const struct gpu *gpu;
	struct segment_place *place; /* NULL where it has none of its own: see count_elsewhere */
	struct mask mask;
} recent __attribute__((tls_model("initial-exec")));

static __thread bool has_asked_for_place __attribute__((tls_model("initial-exec")));

static void forget_recent(void)
{
	atomic_fetch_add_explicit(&changes, 1, memory_order_release);
}

void enforce_use(const struct segment *wanted)
{
	segment = *wanted;
	recent.place = NULL;
	has_asked_for_place = false;
	gpus_after_fork();
	forget_recent();
}

static __attribute__((noinline)) void count_elsewhere(bool restricted)
{
	if (!has_asked_for_place)
		recent.place = segment_take_place(&segment);
	has_asked_for_place = true;
	segment_count_launch(&segment, restricted);
}

static inline void count(bool restricted)
{
	if (__builtin_expect(recent.place != NULL, 1))
		segment_count_launch_alone(recent.place, restricted);
	else
		count_elsewhere(restricted);
}

/* --- the masks of a GPU -------------------------------------------------------------------------- */

_Static_assert(GPU_MASK_WORDS == 4 && sizeof(struct mask) == 4 * sizeof(uint64_t), "copied by words");

/* Copies the mask in force; it is MASK_NONE, and of no revision, where others came round the ring meanwhile. */
static inline void load_mask(const struct gpu *gpu, struct mask *mask)
{
	uint64_t current = atomic_load_explicit(&gpu->current, memory_order_acquire);
	const _Atomic uint64_t *place = gpu->masks[current % GPU_MASKS];
	uint64_t words[GPU_MASK_WORDS] = {
		atomic_load_explicit(&place[0], memory_order_relaxed),
		atomic_load_explicit(&place[1], memory_order_relaxed),
		atomic_load_explicit(&place[2], memory_order_relaxed),
		atomic_load_explicit(&place[3], memory_order_relaxed),
	};

	atomic_thread_fence(memory_order_acquire);
	memcpy(mask, words, sizeof *mask);
	if (atomic_load_explicit(&gpu->current, memory_order_relaxed) - current >= GPU_MASKS - 1)
		*mask = (struct mask){.state = MASK_NONE};
}

/* Puts a newer mask in force, for other threads. Where one of them is doing the same, it may have its way: this thread has
 * its mask. */
static void publish_mask(struct gpu *gpu, const struct mask *mask)
{
	uint64_t words[GPU_MASK_WORDS];

	if (atomic_exchange_explicit(&gpu->compiling, true, memory_order_acquire))
		return;
	uint64_t next = atomic_load_explicit(&gpu->current, memory_order_relaxed) + 1;

	memcpy(words, mask, sizeof words);
	atomic_thread_fence(memory_order_release);
	for (unsigned int word = 0; word < GPU_MASK_WORDS; word++)
		atomic_store_explicit(&gpu->masks[next % GPU_MASKS][word], words[word], memory_order_relaxed);
	atomic_store_explicit(&gpu->current, next, memory_order_release);
	atomic_store_explicit(&gpu->compiling, false, memory_order_release);
}

/* The next launch compiles the mask again. Where another thread is doing it just now, it will see why. */
static void compile_anew(struct gpu *gpu)
{
	struct mask mask;

	load_mask(gpu, &mask);
	mask.number = 0;
	publish_mask(gpu, &mask);
}

void enforce_anew(void)
{
	atomic_thread_fence(memory_order_seq_cst);
	gpus_for_each(compile_anew);
	forget_recent();
}

/* --- compiling ----------------------------------------------------------------------------------- */

/* Whether every TPC of the GPU has its bit in every version of its descriptors. */
static bool family_reaches(const struct gpu *gpu)
{
	return topology_mask_bits(gpu->topology) <= qmd_mask_bits(gpu->family);
}

static void let_through(struct mask *mask, enum segment_reason reason)
{
	mask->state = MASK_LET_THROUGH;
	mask->reason = reason;
}

/* Fills everything but the number. A partition that has no TPC of this GPU is not believed: the mask in force
 * before stays in force (FACTS 6: nothing would ever run). */
static void compile(const struct gpu *gpu, const struct tpcset *set, const struct mask *before,
                    struct mask *mask)
{
	struct tpcset all = topology_all(gpu->topology);
	struct tpcset usable = tpcset_and(set, &all);

	if (tpcset_is_empty(&usable) && before->state != MASK_NONE) {
		*mask = *before;
		segment_count_reason(&segment, SEGMENT_NO_SUCH_TPC);
	} else if (tpcset_is_empty(&usable)) {
		let_through(mask, SEGMENT_NO_SUCH_TPC);
	} else if (tpcset_equal(&usable, &all)) {
		mask->state = MASK_WHOLE_GPU;
	} else {
		mask->state = MASK_RESTRICTED;
		topology_disable_mask(gpu->topology, &usable, mask->disable.words, QMD_MASK_BITS);
	}
}

/* The program has masks of its own: what a launch may use is known when it comes. */
static void leave_to_launch(const struct gpu *gpu, struct mask *mask)
{
	if (mask->state == MASK_LET_THROUGH)
		return;
	if (!gpu->topology) {
		let_through(mask, SEGMENT_NO_TOPOLOGY);
	} else if (!gpu->family || !family_reaches(gpu)) {
		let_through(mask, SEGMENT_UNKNOWN_QMD);
	} else {
		struct tpcset all = topology_all(gpu->topology);

		if (mask->state == MASK_WHOLE_GPU)
			topology_disable_mask(gpu->topology, &all, mask->disable.words, QMD_MASK_BITS);
		mask->state = MASK_BY_LAUNCH;
	}
}

/* The mask of a GPU whose topology is unknown depends on nothing but whether anything was asked for: its
 * address is unknown too, so any partition at all may be meant for it. */
static void compile_unknown(const struct segment_revision *revision, struct mask *mask)
{
	if (revision->count > 0)
		let_through(mask, SEGMENT_NO_TOPOLOGY);
	else
		mask->state = MASK_WHOLE_GPU;
}

/* Turns the mask in force into the one that the segment asks for now. Where the segment cannot be read, the
 * one in force stays. */
static __attribute__((noinline)) void refresh(struct gpu *gpu, struct mask *mask)
{
	struct segment_revision revision;
	struct mask before = *mask;
	uint64_t number, own_masks = atomic_load(&streams_changes);

	if (!segment_read(&segment, &revision, &number)) {
		if (before.state == MASK_NONE)
			let_through(mask, SEGMENT_DAMAGED);
		return;
	}
	if (revision.count > 0)
		log_wake();
	memset(mask, 0, sizeof *mask);
	const struct segment_partition *partition = segment_find(&revision, gpu->pci);

	if (!gpu->topology)
		compile_unknown(&revision, mask);
	else if (!partition)
		mask->state = MASK_WHOLE_GPU;
	else if (!gpu->family || !family_reaches(gpu))
		let_through(mask, SEGMENT_UNKNOWN_QMD);
	else
		compile(gpu, &partition->set, &before, mask);
	if (own_masks > 0)
		leave_to_launch(gpu, mask);
	mask->number = number;
	publish_mask(gpu, mask);
	/* Whoever set the first one meanwhile may have been here before us: either sees what the other wrote. */
	atomic_thread_fence(memory_order_seq_cst);
	if (own_masks == 0 && atomic_load(&streams_changes) > 0)
		enforce_anew();
}

/* --- the launch path ------------------------------------------------------------------------------ */

static void warn_once(enum segment_reason reason)
{
	static _Atomic bool warned[SEGMENT_REASON_COUNT];

	if (!atomic_exchange_explicit(&warned[reason], true, memory_order_relaxed))
		log_warning("%s; launches run unrestricted", segment_reason_text(reason));
}

/* Counts a launch that runs outside its partition, and says so the first time. */
static __attribute__((noinline)) void count_escape(enum segment_reason reason)
{
	strict_refuse(segment_reason_text(reason));
	segment_count_reason(&segment, reason);
	warn_once(reason);
	count(false);
}

static void count_outcome(enum qmd_outcome outcome)
{
	if (outcome == QMD_OVERRULED)
		segment_count_reason(&segment, SEGMENT_GREEN_CONTEXT);
	count(true);
}

/* Blocks that must run at once: the launch gets the room that it needs, where there is a `partition` above the mask
 * first of all in it. */
static __attribute__((noinline)) void narrow_fitting(const struct gpu *gpu, const struct hook_launch *launch,
                                                     const struct mask *mask, const struct mask *partition)
{
	struct qmd_mask disable = mask->disable;
	struct qmd_shape shape = qmd_tells_what_must_fit(gpu->family) ? fit_shape_of(gpu, launch->function, launch->qmd)
	                                                              : misfit_shape();
	bool widened = fit_widen(gpu, launch->function, &shape, launch->qmd, &disable);

	if (widened && partition) {
		disable = partition->disable;
		fit_widen(gpu, launch->function, &shape, launch->qmd, &disable);
	}
	if (widened)
		segment_count_reason(&segment, SEGMENT_WIDENED);
	count_outcome(qmd_disable_fitting(gpu->family, launch->qmd, &disable));
}

/* Part of every launch: made once for those that go by the partition alone. */
static inline __attribute__((always_inline)) void narrow(const struct gpu *gpu, const struct hook_launch *launch,
                                                         const struct mask *mask, const struct mask *partition)
{
	if (__builtin_expect(graphs_uploading, 0))
		graphs_remember(gpu->family, launch->qmd);
	/* Before Hopper the descriptor does not say that its blocks must run at once; where it does, that is more exact. */
	enum qmd_outcome outcome = __builtin_expect(misfit_cooperative, 0) && !qmd_tells_what_must_fit(gpu->family)
	                                   ? QMD_MUST_FIT
	                                   : qmd_disable(gpu->family, launch->qmd, &mask->disable);

	if (__builtin_expect(outcome == QMD_NARROWED, 1))
		count(true);
	else if (outcome == QMD_MUST_FIT)
		narrow_fitting(gpu, launch, mask, partition);
	else if (outcome == QMD_UNKNOWN_VERSION)
		count_escape(SEGMENT_UNKNOWN_QMD);
	else
		count_outcome(outcome);
}

/* Adds to what the partition disables. It stands above the program's own mask: where that leaves nothing of it, the
 * partition alone is in force. */
static void add_own_mask(const struct gpu *gpu, const struct streams_mask *own, struct qmd_mask *disable)
{
	const struct tpcset enabled = {{~own->words[0], ~own->words[1]}};
	struct qmd_mask both;

	topology_disable_mask(gpu->topology, &enabled, both.words, QMD_MASK_BITS);
	both.words[0] |= disable->words[0];
	both.words[1] |= disable->words[1];
	if ((both.words[0] & both.words[1]) == UINT64_MAX)
		segment_count_reason(&segment, SEGMENT_OWN_MASK);
	else
		*disable = both;
}

static bool leaves_whole_gpu(const struct gpu *gpu, const struct qmd_mask *disable)
{
	int disabled = __builtin_popcountll(disable->words[0]) + __builtin_popcountll(disable->words[1]);

	return QMD_MASK_BITS - disabled == gpu->topology->tpc_count;
}

static __attribute__((noinline)) void narrow_by_launch(const struct gpu *gpu, const struct hook_launch *launch,
                                                       const struct mask *partition)
{
	struct mask mask = *partition;
	struct streams_mask own;

	if (graphs_uploading ? streams_of_graphs(&own) : streams_take(&own))
		add_own_mask(gpu, &own, &mask.disable);
	if (leaves_whole_gpu(gpu, &mask.disable))
		count(false);
	else
		narrow(gpu, launch, &mask, partition);
}

/* Finds out what the launches of this thread on a context go by. */
static __attribute__((noinline)) void look_up(CUcontext context)
{
	uint64_t now = atomic_load_explicit(&changes, memory_order_acquire);
	struct gpu *gpu = gpus_of_context(context);

	recent.context = gpu ? context : NULL;
	recent.changes = now;
	recent.gpu = gpu;
	if (gpu)
		load_mask(gpu, &recent.mask);
	else
		let_through(&recent.mask, SEGMENT_NO_TOPOLOGY);
	if (gpu && recent.mask.number != segment_revision_number(&segment))
		refresh(gpu, &recent.mask);
}

static inline bool is_recent(CUcontext context)
{
	return recent.context == context && recent.changes == atomic_load_explicit(&changes, memory_order_acquire) &&
	       recent.mask.number == segment_revision_number(&segment);
}

void enforce_launch(const struct hook_launch *launch)
{
	if (__builtin_expect(!is_recent(launch->context), 0))
		look_up(launch->context);
	if (__builtin_expect(recent.mask.state == MASK_RESTRICTED, 1))
		narrow(recent.gpu, launch, &recent.mask, NULL);
	else if (recent.mask.state == MASK_BY_LAUNCH)
		narrow_by_launch(recent.gpu, launch, &recent.mask);
	else if (recent.mask.state == MASK_LET_THROUGH)
		count_escape(recent.mask.reason);
	else
		count(false);
}

/* --- contexts ------------------------------------------------------------------------------------- */

/* A good moment to ask the kernel driver: outside the launch path, and the GPU is awake. */
void enforce_context_created(CUcontext context)
{
	contexts_forget(context);
	forget_recent();
	gpus_prepare();
}

void enforce_context_destroyed(CUcontext context)
{
	contexts_forget(context);
	forget_recent();
}
