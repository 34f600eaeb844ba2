#include "queued.h"

#include "driver/gpus.h"
#include "driver/pushbuffer/queue.h"
#include "driver/releases.h"
#include "launch/account/timestamps.h"
#include "launch/space/epoch.h"

#include <stdatomic.h>

static atomic_bool is_wanted;

bool queued_want(bool wanted, struct error *error)
{
	bool can = !wanted || queue_prepare();

	if (!can)
		error_set(error, "the C library has no restartable sequences");
	if (can && !hook_want_submissions(wanted)) {
		error_set(error, "the driver does not announce what it submits");
		can = false;
	}
	atomic_store(&is_wanted, wanted && can);
	timestamps_want(wanted && can);
	if (wanted && can)
		hook_want_more();
	epoch_raise();
	return can;
}

bool queued_wants_call(int id)
{
	return atomic_load_explicit(&is_wanted, memory_order_relaxed) && (calls_launch(id) || calls_destroy_stream(id));
}

void queued_call_begins(const struct call *call)
{
	if (calls_destroy_stream(call->id))
		queue_forget_stream(((const struct call_destroy_stream *)call->arguments)->stream, call->context);
}

void queued_launch(struct launch *launch, const struct qmd_change *change, bool is_stamped)
{
	struct launch_end *end = &launch->frame.end;

	end->number = 0;
	if (is_stamped && atomic_load_explicit(&is_wanted, memory_order_relaxed)) {
		const char *cells = timestamps_cells(launch->releases->timestamps);
		uint64_t offset = change->timestamp_at - launch->releases->timestamps_at;

		end->at = (const volatile uint64_t *)(const void *)(cells + offset);
		end->number = change->timestamp;
	}
}

/* The launch's stamp is in the descriptor unless another subscriber has taken the slot since. */
static bool has_stamp(const struct launch *launch)
{
	uint64_t at = launch->releases->timestamps_at + (uintptr_t)launch->frame.end.at -
	              (uintptr_t)timestamps_cells(launch->releases->timestamps);

	return qmd_slot_address(launch->gpu->family, launch->qmd, QMD_STAMPING_SLOT) == at;
}

void queued_submits(struct launch *last, const struct submission *submission)
{
	struct launch_end *end = &last->frame.end;

	if (end->number == 0 || submission->context != last->context || !last->frame.stream || !last->gpu->has_masks)
		return;
	if (!has_stamp(last))
		end->number = 0;
	if (queue_note(last, submission, *end) != QUEUE_NOT_FOUND)
		end->number = 0;
}
