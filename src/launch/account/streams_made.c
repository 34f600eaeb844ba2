#include "streams_made.h"

#include <stdatomic.h>

static const struct segment *own;
static _Atomic uint32_t streams;

void streams_made_use(const struct segment *segment)
{
	own = segment;
	atomic_store(&streams, 0);
	segment_set_streams(own, 0);
}

bool streams_made_wants_call(int id)
{
	return calls_create_stream(id) || calls_destroy_stream(id);
}

/* Threads at the same time may leave an older number, until the next stream. */
void streams_made_call_ended(const struct call *call)
{
	uint32_t count = atomic_load(&streams);
	bool creates = calls_create_stream(call->id), changes = *call->result == CUDA_SUCCESS && (creates || count > 0);

	while (changes && !atomic_compare_exchange_weak(&streams, &count, creates ? count + 1 : count - 1))
		changes = creates || count > 0;
	if (changes)
		segment_set_streams(own, atomic_load(&streams));
}

void streams_made_context_destroyed(void)
{
	atomic_store(&streams, 0);
	segment_set_streams(own, 0);
}
