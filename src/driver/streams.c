#include "streams.h"

#define HALF 32

_Atomic uint64_t streams_waiting;
static atomic_bool has_foreign_event;
static _Atomic uint64_t hosts; /* without waits for events, which a program may use all the time */

/* Handles are addresses. */
uintptr_t streams_number(CUstream stream, CUcontext context)
{
	static __thread char own __attribute__((tls_model("initial-exec")));
	uintptr_t number = (uintptr_t)stream;

	if (stream == CU_STREAM_LEGACY)
		number = (uintptr_t)context;
	else if (stream == CU_STREAM_PER_THREAD)
		number = (uintptr_t)context ^ (uintptr_t)&own << 8;
	return number;
}

static uint64_t bit_of(CUstream stream, CUcontext context)
{
	return UINT64_C(1) << (streams_number(stream, context) * UINT64_C(0x9e3779b97f4a7c15) >> 59);
}

static void wait_in(_Atomic uint64_t *those, uint64_t bit)
{
	uint64_t before = atomic_load(those);

	while (!atomic_compare_exchange_weak(those, &before, (before | bit) & ~(bit << HALF)))
		;
}

static void launch_in(_Atomic uint64_t *those, uint64_t bit)
{
	if (atomic_load_explicit(those, memory_order_relaxed) & bit)
		atomic_fetch_or(those, bit << HALF);
}

/* All launches have ended. Returns the bits of waiting streams. */
static uint64_t end_in(_Atomic uint64_t *those)
{
	uint64_t waiting = atomic_load(those), left = (uint32_t)(waiting & ~(waiting >> HALF));

	return atomic_compare_exchange_strong(those, &waiting, left) ? left : waiting;
}

void streams_wait(CUstream stream, CUcontext context)
{
	wait_in(&hosts, bit_of(stream, context));
	wait_in(&streams_waiting, bit_of(stream, context));
}

void streams_note_foreign_event(void)
{
	atomic_store(&has_foreign_event, true);
}

bool streams_wait_for_event(CUstream stream, CUcontext context, bool has_other_gpus)
{
	bool matters = has_other_gpus || atomic_load(&has_foreign_event) || atomic_load(&hosts) != 0;

	if (matters)
		wait_in(&streams_waiting, bit_of(stream, context));
	return matters;
}

void streams_launch(CUstream stream, CUcontext context)
{
	launch_in(&hosts, bit_of(stream, context));
	launch_in(&streams_waiting, bit_of(stream, context));
}

/* Work in the legacy stream waits for most streams, and most streams wait for the legacy stream. */
static uint64_t bits_for(CUstream stream, CUcontext context)
{
	return stream == CU_STREAM_LEGACY ? UINT32_MAX : bit_of(stream, context) | bit_of(CU_STREAM_LEGACY, context);
}

bool streams_next_waits(CUstream stream, CUcontext context)
{
	uint64_t waiting = atomic_load_explicit(&streams_waiting, memory_order_relaxed);

	return waiting & ~(waiting >> HALF) & bits_for(stream, context);
}

bool streams_may_wait(CUstream stream, CUcontext context, bool is_idle)
{
	uint64_t those = bits_for(stream, context);

	if (is_idle)
		end_in(&hosts);
	return (is_idle ? end_in(&streams_waiting) : atomic_load(&streams_waiting)) & those;
}

void streams_forget(void)
{
	atomic_store(&has_foreign_event, false);
	atomic_store(&hosts, 0);
	atomic_store(&streams_waiting, 0);
}
