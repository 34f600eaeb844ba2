#include "streams.h"

#define HALF 32

_Atomic uint64_t streams_waiting;

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

void streams_wait(CUstream stream, CUcontext context)
{
	uint64_t bit = bit_of(stream, context), before = atomic_load(&streams_waiting);

	while (!atomic_compare_exchange_weak(&streams_waiting, &before, (before | bit) & ~(bit << HALF)))
		;
}

void streams_launch(CUstream stream, CUcontext context)
{
	uint64_t bit = bit_of(stream, context);

	if (atomic_load_explicit(&streams_waiting, memory_order_relaxed) & bit)
		atomic_fetch_or(&streams_waiting, bit << HALF);
}

/* What is in the legacy stream waits for most others, and they for it. */
bool streams_may_wait(CUstream stream, CUcontext context, bool is_idle)
{
	uint64_t waiting = atomic_load(&streams_waiting), left = (uint32_t)(waiting & ~(waiting >> HALF));

	if (is_idle && atomic_compare_exchange_strong(&streams_waiting, &waiting, left))
		waiting = left;
	uint64_t those = stream == CU_STREAM_LEGACY ? UINT32_MAX : bit_of(stream, context) | bit_of(CU_STREAM_LEGACY, context);

	return waiting & those;
}
