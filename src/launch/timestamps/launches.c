#include "timestamps.h"

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

/* `watched_ns` is the time if a watcher looks, else 0. */
static inline __attribute__((always_inline)) bool look(uint64_t *watched_ns)
{
	*watched_ns = segment.memory ? segment_watched_ns(&segment) : 0;
	bool is_on = *watched_ns != 0 || atomic_load_explicit(&is_wanted, memory_order_relaxed);

	if (__builtin_expect(is_on != atomic_load_explicit(&was_on, memory_order_relaxed), 0)) {
		atomic_store_explicit(&was_on, is_on, memory_order_relaxed);
		timestamps_forget_names();
	}
	return is_on;
}

bool timestamps_are_on(void)
{
	uint64_t watched_ns;

	return look(&watched_ns);
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
static uint64_t stream_of(const struct launch *launch, const struct qmd_place *place)
{
	CUstream stream = launch->frame.stream;

	return stream ? timestamps_stream(&launch->frame, stream)
	              : (qmd_drivers_address(place, launch->qmd) & ~(STREAM_LINE - 1)) | TIMESTAMPS_STREAM_UNKNOWN;
}

static __attribute__((noinline)) void ask_name(struct timestamps *timestamps, CUfunction function)
{
	const char *name = NULL;

	if (driver.function_get_name && driver.function_get_name(&name, function) != CUDA_SUCCESS)
		name = NULL;
	timestamps_name(timestamps, function, name);
}

void timestamps_write_name(struct timestamps *timestamps, CUfunction function)
{
	if (timestamps_want_name(timestamps, function))
		ask_name(timestamps, function);
}

static __attribute__((noinline)) void note_slot_used(const struct launch *launch)
{
	if (qmd_is_known(launch->gpu->family, launch->qmd))
		timestamps_note_gap(launch->releases->timestamps, TIMESTAMPS_SLOT_USED);
}

const struct qmd_place *timestamps_place(const struct launch *launch)
{
	const struct releases *releases = launch->releases;
	const struct qmd_place *place =
	    releases->timestamps ? qmd_release_look(&releases->stamping, launch->qmd) : NULL;

	if (releases->timestamps && !place)
		note_slot_used(launch);
	return place;
}

static struct timestamps_cell add_launch(const struct launch *launch, const struct qmd_place *place,
                                         unsigned int tpcs, uint64_t launched_ns)
{
	struct timestamps *timestamps = launch->releases->timestamps;
	const struct timestamps_launch record = {
		.launched_ns = launched_ns, .function = launch->function, .stream = stream_of(launch, place),
		.tpcs = tpcs, .grid = qmd_grid_of(place, launch->qmd),
	};

	timestamps_write_name(timestamps, launch->function);
	return timestamps_add_launch(timestamps, &record);
}

/* Where only the own process looks, only the end is told. */
struct timestamps_cell timestamps_of_launch(const struct launch *launch, unsigned int tpcs, bool *is_on)
{
	uint64_t watched_ns;

	*is_on = look(&watched_ns);
	const struct qmd_place *place = *is_on ? timestamps_place(launch) : NULL;

	struct timestamps_cell cell = {.number = 0};

	if (place && watched_ns != 0)
		cell = add_launch(launch, place, tpcs, watched_ns);
	else if (place)
		cell = timestamps_add_end(launch->releases->timestamps);
	if (place)
		qmd_stamp(place, launch->qmd, launch->releases->timestamps_at + cell.at, cell.number);
	return cell;
}
