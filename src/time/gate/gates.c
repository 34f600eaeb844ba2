#include "gates.h"

#include "base/clock.h"
#include "driver/gpus.h"

#include <string.h>
#include <sys/mman.h>

struct gate_state gate_state = {.spent_at = UINT64_MAX};

/* By gpus_number. Never given back: a launch may look at any time. */
static _Atomic(struct gate *) gates[GPUS_MAX];

struct gate *gates_of(const struct gpu *gpu)
{
	return atomic_load_explicit(&gates[gpu->number], memory_order_acquire);
}

/* Until our thread has looked, the work in flight is unknown. */
static void begin(struct gate *gate, const struct gpu *gpu)
{
	gate->gpu = gpu;
	gate->claims.own_is_unknown = true;
}

struct gate *gates_make(const struct gpu *gpu)
{
	const int private = MAP_PRIVATE | MAP_ANONYMOUS;
	struct gate *there = gates_of(gpu);
	void *memory = there ? MAP_FAILED : mmap(NULL, sizeof *there, PROT_READ | PROT_WRITE, private, -1, 0);

	if (memory != MAP_FAILED) {
		begin(memory, gpu);
		if (atomic_compare_exchange_strong(&gates[gpu->number], &there, memory))
			there = memory;
		else
			munmap(memory, sizeof *there);
	}
	return there;
}

#define LOCK_TRIES 1000

bool gate_lock_soon(struct gate *gate, long pause_us)
{
	bool has = gate_lock(gate);

	for (unsigned int tries = 0; !has && tries < LOCK_TRIES; tries++) {
		if (pause_us > 0)
			clock_pause_us(pause_us);
		has = gate_lock(gate);
	}
	return has;
}

void gates_open(const struct gpu *gpu)
{
	struct gate *gate = gates_make(gpu);

	if (gate && gate_lock(gate)) {
		claims_see_own(&gate->claims, gpu->pci, true);
		gate_unlock(gate);
	}
}

void gates_after_fork(void)
{
	for (unsigned int i = 0; i < GPUS_MAX; i++) {
		struct gate *gate = atomic_load(&gates[i]);

		if (gate) {
			const struct gpu *gpu = gate->gpu;

			memset(gate, 0, sizeof *gate);
			begin(gate, gpu);
		}
	}
	memset(&gate_state, 0, sizeof gate_state);
	gate_state.spent_at = UINT64_MAX;
}
