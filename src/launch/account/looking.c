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

/* The words of a stream's line take turns (docs/hardware.md, "Releases"). */
#define STREAM_LINE UINT64_C(64)

/* Each thread has a per-thread stream of its own. */
uint64_t looking_stream(CUstream stream)
{
	static __thread uint64_t own __attribute__((tls_model("initial-exec")));

	return stream == CU_STREAM_PER_THREAD ? (uintptr_t)&own : (uintptr_t)stream;
}

/* The stream, if we hear of the call that launches. Otherwise the line in which the driver is told of the end, in slot 0. */
static uint64_t stream_of(const struct launch *launch)
{
	CUstream stream = launch->origin.stream;

	return stream ? looking_stream(stream)
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

bool looking_stamp(const struct launch *launch, struct stamps_cell cell)
{
	const struct releases *releases = launch->releases;
	struct qmd_release release;
	bool is_written = qmd_release_prepare(&release, launch->gpu->family, QMD_STAMPING_SLOT, QMD_STAMPS,
	                                      releases->stamps_at + cell.at, cell.number) &&
	                  qmd_release(&release, launch->qmd) == QMD_RELEASES;

	if (!is_written) {
		stamps_note_gap(releases->stamps, STAMPS_SLOT_USED);
		stamps_take_back(releases->stamps, cell);
	}
	return is_written;
}

void looking_launch(const struct launch *launch, unsigned int tpcs)
{
	struct stamps *stamps = launch->releases ? launch->releases->stamps : NULL;

	if (stamps && qmd_is_known(launch->gpu->family, launch->qmd)) {
		const struct stamps_launch record = {
			.launched_ns = process_clock_ns(),
			.function = launch->function,
			.stream = stream_of(launch),
			.tpcs = tpcs,
		};

		looking_name(stamps, launch->function);
		struct stamps_cell cell = stamps_add_launch(stamps, &record);

		looking_stamp(launch, cell);
	}
}
