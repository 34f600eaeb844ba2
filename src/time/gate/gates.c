#include "gates.h"

#include "driver/gpus.h"
#include "driver/streams.h"

#include <string.h>
#include <sys/mman.h>

struct gate_state gate_state = {.spent_at = UINT64_MAX};

/* By gpus_number. Never given back: a launch may look at any time. */
static _Atomic(struct gate *) gates[GPUS_MAX];

struct gate *gates_of(const struct gpu *gpu)
{
	return atomic_load_explicit(&gates[gpu->number], memory_order_acquire);
}

bool gates_make(const struct gpu *gpu)
{
	struct gate *gate = gates_of(gpu);

	if (!gate) {
		void *memory = mmap(NULL, sizeof *gate, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		gate = memory != MAP_FAILED ? memory : NULL;
		if (gate)
			gate->gpu = gpu;
		atomic_store_explicit(&gates[gpu->number], gate, memory_order_release);
	}
	return gate;
}

void gates_after_fork(void)
{
	for (unsigned int i = 0; i < GPUS_MAX; i++) {
		struct gate *gate = atomic_load(&gates[i]);

		if (gate) {
			const struct gpu *gpu = gate->gpu;

			memset(gate, 0, sizeof *gate);
			gate->gpu = gpu;
		}
	}
	memset(&gate_state, 0, sizeof gate_state);
	gate_state.spent_at = UINT64_MAX;
}
