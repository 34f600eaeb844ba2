#include "looking.h"

#include "base/clock.h"
#include "driver/functions.h"
#include "driver/gpus.h"
#include "driver/releases.h"
#include "state/segment/lease.h"

#include <stdatomic.h>

static struct segment segment;
static atomic_bool was_on;

void looking_use(const struct segment *wanted)
{
	segment = *wanted;
	atomic_store(&was_on, false);
}

bool looking_is_on(void)
{
	bool is_on = lease_is_on(&segment);

	if (__builtin_expect(is_on != atomic_load_explicit(&was_on, memory_order_relaxed), 0)) {
		atomic_store_explicit(&was_on, is_on, memory_order_relaxed);
		stamps_forget_names();
	}
	return is_on;
}

void looking_functions_changed(void)
{
	stamps_forget_names();
}

/* --- launches --------------------------------------------------------------------------------------------------- */

/* The words of a stream's line take turns (hardware.md, "Releases"). */
#define STREAM_LINE UINT64_C(64)

/* Each thread has a per-thread stream of its own, and a frame. */
uint64_t looking_stream(const struct frame *frame, CUstream stream)
{
	return stream == CU_STREAM_PER_THREAD ? (uintptr_t)frame : (uintptr_t)stream;
}

/* The stream, if we hear of the call that launches. Otherwise the line in which the driver is told of the end, in slot 0. */
static uint64_t stream_of(const struct launch *launch)
{
	CUstream stream = launch->frame.stream;

	return stream ? looking_stream(&launch->frame, stream)
	              : (qmd_slot_address(launch->gpu->family, launch->qmd, 0) & ~(STREAM_LINE - 1)) | STAMPS_STREAM_UNKNOWN;
}

void looking_name(struct stamps *stamps, CUfunction function)
{
	const char *name = NULL;

	if (!stamps_want_name(stamps, function))
		return;
	if (driver.function_get_name && driver.function_get_name(&name, function) != CUDA_SUCCESS)
		name = NULL;
	stamps_name(stamps, function, name);
}

bool looking_can_stamp(const struct launch *launch)
{
	const struct releases *releases = launch->releases;
	bool can = releases->stamps && qmd_release_look(&releases->stamping, launch->qmd) == QMD_RELEASES;

	if (releases->stamps && !can && qmd_is_known(launch->gpu->family, launch->qmd))
		stamps_note_gap(releases->stamps, STAMPS_SLOT_USED);
	return can;
}

void looking_stamp(const struct launch *launch, struct stamps_cell cell, struct qmd_change *change)
{
	change->stamping = &launch->releases->stamping;
	change->stamp_at = launch->releases->stamps_at + cell.at;
	change->stamp = cell.number;
}

bool looking_launch(const struct launch *launch, unsigned int tpcs, struct qmd_change *change)
{
	bool is_on = looking_is_on();

	if (is_on && looking_can_stamp(launch)) {
		struct stamps *stamps = launch->releases->stamps;
		const struct stamps_launch record = {
			.launched_ns = process_clock_ns(),
			.function = launch->function,
			.stream = stream_of(launch),
			.tpcs = tpcs,
		};

		looking_name(stamps, launch->function);
		looking_stamp(launch, stamps_add_launch(stamps, &record), change);
	}
	return is_on;
}
