#include "timestamps.h"

#include "base/clock.h"
#include "driver/functions.h"
#include "driver/gpus.h"
#include "driver/releases.h"
#include "state/segment/events.h"

#include <stdatomic.h>

static struct segment segment;
static atomic_bool was_on, is_wanted;

void timestamps_use(const struct segment *wanted)
{
	segment = *wanted;
	atomic_store(&was_on, false);
}

void timestamps_want(bool wanted)
{
	atomic_store(&is_wanted, wanted);
}

bool timestamps_are_on(void)
{
	bool is_on = atomic_load_explicit(&is_wanted, memory_order_relaxed) || segment_is_watched(&segment);

	if (__builtin_expect(is_on != atomic_load_explicit(&was_on, memory_order_relaxed), 0)) {
		atomic_store_explicit(&was_on, is_on, memory_order_relaxed);
		timestamps_forget_names();
	}
	return is_on;
}

/* --- launches --------------------------------------------------------------------------------------------------- */

/* The words of a stream's line take turns (hardware.md, "Releases"). */
#define STREAM_LINE UINT64_C(64)

/* Each thread has a per-thread stream of its own, and a frame. */
uint64_t timestamps_stream(const struct frame *frame, CUstream stream)
{
	return stream == CU_STREAM_PER_THREAD ? (uintptr_t)frame : (uintptr_t)stream;
}

/* The stream, if we hear of the launching call. Otherwise the line where the driver is told of the end, in slot 0. */
static uint64_t stream_of(const struct launch *launch)
{
	CUstream stream = launch->frame.stream;

	return stream ? timestamps_stream(&launch->frame, stream)
	              : (qmd_slot_address(launch->gpu->family, launch->qmd, 0) & ~(STREAM_LINE - 1)) |
	                    TIMESTAMPS_STREAM_UNKNOWN;
}

void timestamps_write_name(struct timestamps *timestamps, CUfunction function)
{
	const char *name = NULL;

	if (!timestamps_want_name(timestamps, function))
		return;
	if (driver.function_get_name && driver.function_get_name(&name, function) != CUDA_SUCCESS)
		name = NULL;
	timestamps_name(timestamps, function, name);
}

bool timestamps_can_write(const struct launch *launch)
{
	const struct releases *releases = launch->releases;
	bool can = releases->timestamps && qmd_release_look(&releases->stamping, launch->qmd) == QMD_RELEASES;

	if (releases->timestamps && !can && qmd_is_known(launch->gpu->family, launch->qmd))
		timestamps_note_gap(releases->timestamps, TIMESTAMPS_SLOT_USED);
	return can;
}

void timestamps_write(const struct launch *launch, struct timestamps_cell cell, struct qmd_change *change)
{
	change->stamping = &launch->releases->stamping;
	change->timestamp_at = launch->releases->timestamps_at + cell.at;
	change->timestamp = cell.number;
}

/* Where only the own process looks, only the end is told. */
static struct timestamps_cell add_launch(const struct launch *launch, unsigned int tpcs)
{
	struct timestamps *timestamps = launch->releases->timestamps;

	if (!segment.memory || !segment_is_watched(&segment))
		return timestamps_add_end(timestamps);
	const struct timestamps_launch record = {
		.launched_ns = process_clock_ns(), .function = launch->function,
		.stream = stream_of(launch), .tpcs = tpcs,
	};

	timestamps_write_name(timestamps, launch->function);
	return timestamps_add_launch(timestamps, &record);
}

bool timestamps_of_launch(const struct launch *launch, unsigned int tpcs, struct qmd_change *change)
{
	bool is_on = timestamps_are_on();

	if (is_on && timestamps_can_write(launch))
		timestamps_write(launch, add_launch(launch, tpcs), change);
	return is_on;
}
