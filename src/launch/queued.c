#include "queued.h"

#include "driver/gpus.h"
#include "driver/pushbuffer/queue.h"
#include "driver/releases.h"
#include "launch/account/account.h"
#include "launch/space/epoch.h"
#include "launch/timestamps/timestamps.h"

#include <stdatomic.h>

static atomic_bool is_wanted, was_wanted;

/* Once. */
static bool refuse(struct error *error, enum segment_reason reason)
{
	static _Atomic bool counted[SEGMENT_REASON_COUNT];

	if (!atomic_exchange(&counted[reason], true))
		account_reason(reason);
	error_set(error, "%s", segment_reason_text(reason));
	return false;
}

static bool prepare(struct error *error)
{
	bool can = true;

	if (!hook_is_subscribed()) {
		error_set(error, "the driver's callbacks do not come yet");
		can = false;
	} else if (!queue_prepare()) {
		can = refuse(error, SEGMENT_QUEUE_NO_SEQUENCES);
	} else if (!hook_want_submissions(true)) {
		can = refuse(error, SEGMENT_QUEUE_UNANNOUNCED);
	}
	return can;
}

bool queued_want(bool wanted, struct error *error)
{
	bool can = !wanted || prepare(error);

	if (!wanted)
		hook_want_submissions(false);
	queue_interrupt(); /* foreign work was not announced before */
	atomic_store(&is_wanted, wanted && can);
	timestamps_want(wanted && can);
	if (wanted && can) {
		atomic_store(&was_wanted, true);
		hook_want_more();
	}
	epoch_raise();
	return can;
}

/* --- calls -------------------------------------------------------------------------------------------------------- */

/* Waits, and moves of managed memory: the driver may submit neither. */
static bool is_other_work(int id)
{
	return calls_make_stream_wait(id) || calls_may_use_managed_memory(id);
}

bool queued_wants_call(int id)
{
	return (atomic_load_explicit(&is_wanted, memory_order_relaxed) && (calls_launch(id) || is_other_work(id))) ||
	       (atomic_load_explicit(&was_wanted, memory_order_relaxed) && calls_destroy_stream(id));
}

void queued_call_begins(const struct call *call)
{
	if (calls_destroy_stream(call->id))
		queue_forget_stream(((const struct call_destroy_stream *)call->arguments)->stream, call->context);
	else if (calls_wait_for_event(call->id))
		queue_wait(calls_waiting_stream(call), call->context);
	else if (calls_make_stream_wait(call->id))
		queue_interrupt();
	else if (calls_may_use_managed_memory(call->id))
		queue_pass_foreign();
}

/* --- launches ----------------------------------------------------------------------------------------------------- */

#define LINE 64 /* of the processor's cache, in bytes */

/* The GPU has written the cells since this processor has read them: the next launches find theirs at hand. */
static struct launch_end end_of(const struct launch *launch, struct timestamps_cell cell)
{
	const char *cells = timestamps_cells(launch->releases->timestamps);
	struct launch_end end = {(const volatile uint64_t *)(const void *)(cells + cell.at), cell.number};

	__builtin_prefetch(cells + cell.at + LINE);
	/* The earlier launch of the cell has not ended, and may still overwrite the end of the launch. */
	if (__atomic_load_n(end.at, __ATOMIC_RELAXED) + TIMESTAMPS_CELLS < end.number)
		end.number = 0;
	return end;
}

/* The driver's mask of a green context leaves less than ours. For clusters, the driver has a mask of its own. */
static bool is_less(const struct launch *launch)
{
	struct qmd_mask mask = qmd_own_mask(launch->gpu->family, launch->qmd);
	bool is = false;

	for (unsigned int i = 0; i < sizeof mask.words / sizeof *mask.words; i++)
		is |= (mask.words[i] & ~launch->frame.recent.mask.words[i] & launch->gpu->present.words[i]) != 0;
	return is;
}

/* The program itself, or a green context, leaves the launch less than the process may use. */
static bool is_limited(const struct launch *launch)
{
	const struct recent *recent = &launch->frame.recent;
	const struct fitted *fitted = &launch->frame.fitted;
	unsigned int cluster = qmd_cluster(launch->gpu->family, launch->qmd);
	bool is = recent->has_own_mask;

	if (recent->gpu && cluster > 0)
		is |= fitted->cluster != cluster || fitted->has_own_mask;
	else if (recent->gpu)
		is |= is_less(launch);
	return is;
}

/* If the end of the last launch is still there, no commands came. */
static __attribute__((noinline)) void note_end(struct launch *launch, struct timestamps_cell cell)
{
	bool is_stamped = cell.number != 0;
	struct launch_end *end = &launch->frame.end;

	if (end->number != 0)
		account_reason(SEGMENT_QUEUE_LAYOUT);
	if (!is_stamped && qmd_slot_is_used(launch->gpu->family, launch->qmd, QMD_STAMPING_SLOT))
		account_reason(SEGMENT_QUEUE_SLOT);
	launch->frame.keeps_mask = is_stamped && is_limited(launch);
	*end = is_stamped ? end_of(launch, cell) : (struct launch_end){.number = 0};
}

void queued_launch(struct launch *launch, struct timestamps_cell cell)
{
	if (atomic_load_explicit(&is_wanted, memory_order_relaxed))
		note_end(launch, cell);
	else
		launch->frame.end.number = 0;
}

/* The launch's stamp is in the descriptor unless another subscriber has taken the slot since. */
static bool has_stamp(const struct launch *launch)
{
	const struct qmd_release *stamping = &launch->releases->stamping;
	uint64_t at = launch->releases->timestamps_at + (uintptr_t)launch->frame.end.at -
	              (uintptr_t)timestamps_cells(launch->releases->timestamps);

	return !qmd_release_look(stamping, launch->qmd) && qmd_save_slot(stamping, launch->qmd).address == at;
}

/* Whether the submission may be a launch with a known end. */
static bool is_known(const struct launch *last, const struct submission *submission)
{
	const struct frame *frame = &last->frame;
	bool is_launch = frame->end.number != 0 && submission->context == last->context && frame->stream;
	bool is_stamped = is_launch && has_stamp(last);

	if (is_launch && !is_stamped)
		account_reason(SEGMENT_QUEUE_SLOT);
	if (is_stamped && frame->begins_early)
		account_reason(SEGMENT_QUEUE_EARLY);
	return is_stamped && !frame->begins_early && last->gpu->has_masks;
}

struct launch_end queued_submits(struct launch *last, const struct submission *submission)
{
	struct frame *frame = &last->frame;
	enum queue_outcome outcome = QUEUE_UNKNOWN;
	struct launch_end end = {.number = 0};

	if (is_known(last, submission)) {
		outcome = queue_note(last, submission);
		frame->is_noted = outcome == QUEUE_NOTED;
		frame->is_behind_unknown = outcome == QUEUE_UNKNOWN || outcome == QUEUE_STREAMS;
		end = outcome != QUEUE_NOT_FOUND ? frame->end : end;
	} else {
		queue_pass_foreign();
	}
	if (outcome != QUEUE_NOT_FOUND)
		frame->end.number = 0;
	return end;
}
