#include "partition.h"

#include "app_masks.h"
#include "base/log.h"
#include "base/ring.h"
#include "driver/contexts.h"
#include "driver/gpus.h"
#include "graphs.h"
#include "hot.h"
#include "misfit.h"
#include "residency.h"
#include "strict.h"

#include <pthread.h>
#include <string.h>

static struct segment segment;

/* By which a launch sees that everything is as it was. */
HOT_DATA HOT_FIRST static struct {
	_Atomic uint64_t *revision; /* the segment's: its number */
	_Atomic uint64_t others;    /* how often a mask has changed otherwise, or a context come or gone */
	ptrdiff_t recent;           /* where a thread finds what was (hot.h) */
} changes;

#define NEVER UINT64_MAX /* in place of a number of changes */

/* What the last launch of this thread went by, if that was the partition alone: the next one on the same context does, too,
 * while nothing has changed. With where the thread counts its launches, in one line of the cache. */
static __thread struct recent {
	HOT_OWN_FIRST CUcontext context;
	uint64_t revision, others;   /* as `changes` was; others NEVER where the next launch is to be looked at anew */
	struct segment_place *place; /* NULL where it has none of its own: see count_elsewhere */
	qmd_disabler *disable;       /* NULL where the partition leaves the GPU whole */
	struct qmd_mask mask;
} recent __attribute__((tls_model("initial-exec")));

_Static_assert(sizeof(struct recent) <= HOT_LINE, "one line");

static __thread bool has_asked_for_place __attribute__((tls_model("initial-exec")));

/* A thread that ends gives its place back. Above the number, the C library takes memory for each thread's value. */
#define KEYS_WITHOUT_MEMORY 32 /* glibc's PTHREAD_KEY_2NDLEVEL_SIZE */
static pthread_key_t place_key;
static atomic_bool has_place_key;

static void forget_recent(void)
{
	atomic_fetch_add_explicit(&changes.others, 1, memory_order_release);
}

void enforce_use(const struct segment *wanted)
{
	segment = *wanted;
	changes.revision = segment.number;
	changes.recent = hot_distance(&recent);
	recent.place = NULL;
	has_asked_for_place = false;
	/* In a fork's child, it was its parent's. */
	if (atomic_load(&has_place_key))
		pthread_setspecific(place_key, NULL);
	gpus_after_fork();
	forget_recent();
}

/* What it launches from now on, in other destructors, counts in the common place. */
static void give_place_back(void *place)
{
	recent.place = NULL;
	segment_give_place(&segment, place);
}

void enforce_follow_threads(void)
{
	bool has_key = pthread_key_create(&place_key, give_place_back) == 0;

	if (has_key && place_key >= KEYS_WITHOUT_MEMORY)
		pthread_key_delete(place_key);
	else
		atomic_store(&has_place_key, has_key);
}

/* Without a key, a thread would have it for ever. */
static struct segment_place *take_place(void)
{
	struct segment_place *place = segment_take_place(&segment);

	if (place && atomic_load(&has_place_key))
		pthread_setspecific(place_key, place);
	return place;
}

static __attribute__((noinline)) void count_elsewhere(bool restricted)
{
	if (!has_asked_for_place)
		recent.place = take_place();
	has_asked_for_place = true;
	if (recent.place)
		segment_count_launch_alone(recent.place, restricted);
	else
		segment_count_launch(&segment, restricted);
}

static inline void count_in(struct segment_place *place, bool restricted)
{
	if (__builtin_expect(place != NULL, 1))
		segment_count_launch_alone(place, restricted);
	else
		count_elsewhere(restricted);
}

static void count(bool restricted)
{
	count_in(recent.place, restricted);
}

/* --- the masks of a GPU -------------------------------------------------------------------------- */

_Static_assert(sizeof(struct mask) == GPU_MASK_WORDS * sizeof(uint64_t), "copied by words");

/* Copies the mask in force; it is MASK_NONE, and of no revision, where others came round the ring meanwhile. */
static void load_mask(const struct gpu *gpu, struct mask *mask)
{
	uint64_t seen = atomic_load_explicit(&gpu->current, memory_order_acquire);
	uint64_t words[GPU_MASK_WORDS];

	ring_copy(words, gpu->masks[seen % GPU_MASKS], GPU_MASK_WORDS);
	memcpy(mask, words, sizeof *mask);
	if (!ring_is_whole(&gpu->current, seen, GPU_MASKS))
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
	ring_fill(gpu->masks[next % GPU_MASKS], words, GPU_MASK_WORDS);
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

/* Where `mask` is the program's own, in a `partition` above it, a launch that it cannot hold has all of that, first of all. */
static enum fit_outcome find_room(const struct gpu *gpu, const struct hook_launch *launch, const struct mask *mask,
                                  const struct mask *partition, struct qmd_mask *disable)
{
	struct qmd_shape shape = qmd_tells_what_must_fit(gpu->family) ? fit_shape_of(gpu, launch->function, launch->qmd)
	                                                              : misfit_shape();

	*disable = mask->disable;
	enum fit_outcome outcome = fit_find(gpu, launch->function, &shape, launch->qmd, disable);

	if (outcome == FIT_WIDENED && partition) {
		*disable = partition->disable;
		outcome = fit_find(gpu, launch->function, &shape, launch->qmd, disable);
		if (outcome != FIT_WIDENED)
			segment_count_reason(&segment, SEGMENT_OWN_MASK);
	}
	return outcome;
}

static void narrow_fitting(const struct gpu *gpu, const struct hook_launch *launch, const struct mask *mask,
                           const struct mask *partition)
{
	struct qmd_mask disable;
	enum fit_outcome outcome = find_room(gpu, launch, mask, partition, &disable);

	qmd_set_mask(gpu->family, launch->qmd, &disable);
	if (outcome == FIT_WIDENED)
		segment_count_reason(&segment, SEGMENT_WIDENED);
	count_outcome(outcome == FIT_IN_PARTITION ? QMD_OVERRULED : QMD_NARROWED);
}

/* Before Hopper the descriptor does not say that its blocks must run at once; where it does, that is more exact. */
static bool must_fit_before_hopper(const struct gpu *gpu, const void *qmd)
{
	return misfit_cooperative && !qmd_tells_what_must_fit(gpu->family) && qmd_is_known(gpu->family, qmd);
}

static void narrow(const struct gpu *gpu, const struct hook_launch *launch, const struct mask *mask,
                   const struct mask *partition)
{
	if (graphs_uploading)
		graphs_remember(gpu->family, launch->qmd);
	enum qmd_outcome outcome = must_fit_before_hopper(gpu, launch->qmd)
	                                   ? QMD_MUST_FIT
	                                   : qmd_disable(gpu->family, launch->qmd, &mask->disable);

	if (outcome == QMD_MUST_FIT)
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

static void narrow_by_launch(const struct gpu *gpu, const struct hook_launch *launch, const struct mask *partition)
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

/* What a launch on this GPU, if that is known, goes by. */
static void find_mask(struct gpu *gpu, struct mask *mask)
{
	if (!gpu) {
		let_through(mask, SEGMENT_NO_TOPOLOGY);
	} else {
		load_mask(gpu, mask);
		if (mask->number != segment_revision_number(&segment))
			refresh(gpu, mask);
	}
}

/* A call that may make more than one launch special is a graph's; others begin anew (enforce_call_begins). */
static bool goes_by_partition_alone(const struct mask *mask)
{
	return mask->state == MASK_WHOLE_GPU || (mask->state == MASK_RESTRICTED && !graphs_uploading);
}

static void remember(CUcontext context, const struct gpu *gpu, const struct mask *mask, uint64_t others)
{
	recent.context = context;
	recent.revision = mask->number;
	recent.others = goes_by_partition_alone(mask) ? others : NEVER;
	recent.disable = mask->state == MASK_RESTRICTED ? gpu->family->disable : NULL;
	recent.mask = mask->disable;
}

static __attribute__((noinline)) void launch_anew(const struct hook_launch *launch)
{
	uint64_t others = atomic_load_explicit(&changes.others, memory_order_acquire);
	struct gpu *gpu = gpus_of_context(launch->context);
	struct mask mask = {.state = MASK_NONE};

	find_mask(gpu, &mask);
	remember(launch->context, gpu, &mask, others);
	if (mask.state == MASK_RESTRICTED)
		narrow(gpu, launch, &mask, NULL);
	else if (mask.state == MASK_BY_LAUNCH)
		narrow_by_launch(gpu, launch, &mask);
	else if (mask.state == MASK_LET_THROUGH)
		count_escape(mask.reason);
	else
		count(false);
}

/* What is in no need of more than a mask was narrowed; for the rest the descriptor is as it was. */
static __attribute__((noinline)) void launch_otherwise(const struct hook_launch *launch, enum qmd_outcome outcome)
{
	if (outcome == QMD_OVERRULED)
		count_outcome(outcome);
	else
		launch_anew(launch);
}

static inline bool is_as_before(const struct recent *before, CUcontext context)
{
	return before->context == context &&
	       before->others == atomic_load_explicit(&changes.others, memory_order_acquire) &&
	       before->revision == atomic_load_explicit(changes.revision, memory_order_acquire);
}

static inline void narrow_as_before(const struct recent *before, const struct hook_launch *launch)
{
	enum qmd_outcome outcome = before->disable(launch->qmd, &before->mask);

	if (__builtin_expect(outcome == QMD_NARROWED, 1))
		count_in(before->place, true);
	else
		launch_otherwise(launch, outcome);
}

HOT_CODE void enforce_launch(const struct hook_launch *launch)
{
	const struct recent *before = hot_own(changes.recent);

	if (__builtin_expect(!is_as_before(before, launch->context), 0))
		launch_anew(launch);
	else if (before->disable)
		narrow_as_before(before, launch);
	else
		count_in(before->place, false);
}

void enforce_call_begins(void)
{
	recent.others = NEVER;
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
