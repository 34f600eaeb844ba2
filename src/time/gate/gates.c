#include "gates.h"

#include "driver/gpus.h"
#include "driver/streams.h"

#include <string.h>

struct gate_state gate_state = {.spent_at = UINT64_MAX};
struct gate gates[GPUS_MAX];

struct others_on_gpu *gate_enter(struct gate *gate)
{
	unsigned int side;

	while (side = atomic_load(&gate->current), atomic_fetch_add(&gate->readers[side], 1), atomic_load(&gate->current) != side)
		atomic_fetch_sub(&gate->readers[side], 1);
	return &gate->views[side];
}

void gate_leave(struct gate *gate, const struct others_on_gpu *view)
{
	atomic_fetch_sub_explicit(&gate->readers[view - gate->views], 1, memory_order_release);
}

struct others_on_gpu *gate_unread(struct gate *gate)
{
	struct others_on_gpu *found = NULL;

	for (unsigned int side = 0; side < GATE_VIEWS && !found; side++) {
		if (side != atomic_load(&gate->current) && atomic_load(&gate->readers[side]) == 0)
			found = &gate->views[side];
	}
	return found;
}

void gate_measure(struct gate *gate, struct others_on_gpu *others)
{
	if (!atomic_load_explicit(&gate->measure.is_on, memory_order_relaxed))
		return;
	uint64_t open = (uint64_t)others->generation << 32 | others_look(others, 1).open;

	if (measure_look(&gate->measure, others_own_ended(others), others_own_in_flight(others), open) > others->limit_ns)
		atomic_fetch_add(&gate_state.overruns, 1);
}

void gates_after_fork(void)
{
	memset(gates, 0, sizeof gates);
	memset(&gate_state, 0, sizeof gate_state);
	gate_state.spent_at = UINT64_MAX;
	lengths_forget();
	streams_forget();
}
