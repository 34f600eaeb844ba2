#include "gates.h"

#include "base/extremes.h"
#include "base/futex.h"
#include "driver/gpus.h"
#include "driver/hook.h"
#include "driver/streams.h"
#include "launch/space/epoch.h"

#include <limits.h>
#include <string.h>

#define LOOK_NS UINT64_C(20000)

struct gate_state gate_state = {.left_ns = UINT64_MAX};
struct gate gates[GPUS_MAX];

/* --- views ------------------------------------------------------------------------------------------------------------ */

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

void gate_measure(struct gate *gate, struct others_on_gpu *others)
{
	if (!atomic_load_explicit(&gate->measure.is_on, memory_order_relaxed))
		return;
	uint64_t open = (uint64_t)others->generation << 32 | others_look(others, 1).open;

	if (measure_look(&gate->measure, others_own_ended(others), others_own_in_flight(others), open) > others->limit_ns)
		atomic_fetch_add(&gate_state.overruns, 1);
}

/* --- our thread ------------------------------------------------------------------------------------------------------- */

static void listen(void)
{
	if (!atomic_exchange(&gate_state.listens, true)) {
		epoch_raise(); /* what was decided before is for fills as well */
		hook_want_more();
	}
}

void gate_set_left(uint64_t ns)
{
	uint64_t before = atomic_exchange(&gate_state.left_ns, ns);

	if (ns != UINT64_MAX)
		listen();
	if ((before == UINT64_MAX) != (ns == UINT64_MAX))
		epoch_raise_world();
	if (before == 0 && ns != 0) {
		atomic_fetch_add(&gate_state.news, 1);
		futex_wake(&gate_state.news, INT_MAX);
	}
}

void gate_set_open(bool is_open)
{
	if (atomic_exchange(&gate_state.is_open, is_open) != is_open)
		epoch_raise_world();
	if (!is_open)
		gate_set_left(UINT64_MAX);
}

/* What the last launch uses beyond the process's own, if anything is in flight. */
static void borrow(struct gate *gate, const struct others_on_gpu *others, uint64_t passed, struct segment_borrowed *borrowed)
{
	uint32_t how = atomic_load(&gate->last_how);
	bool is_more = how & WHERE_MORE && !(how & WHERE_OWN) && others_own_in_flight(others) > 0;
	struct tpcset all = others_tpcs(others, is_more ? where_open(how) : 0), tpcs = tpcset_without(&all, &others->all_own);

	borrowed->tpcs = tpcset_or(&borrowed->tpcs, &tpcs);
	borrowed->tpc_us += tpcset_count(&tpcs) * passed / 1000;
	for (unsigned int i = 0, at = 0; i < others->count; i++, at = 0) {
		struct tpcset of_it = tpcset_and(&tpcs, &others->list[i].gives);
		uint64_t lender = (uint64_t)others->list[i].pid, tpc_us = tpcset_count(&of_it) * passed / 1000;

		while (at < SEGMENT_LOANS && borrowed->loans[at].lender != 0 && borrowed->loans[at].lender != lender)
			at++;
		if (at < SEGMENT_LOANS && tpc_us > 0)
			borrowed->loans[at] = (struct segment_loan){lender, borrowed->loans[at].tpc_us + tpc_us};
	}
}

void gate_see(const struct gpu *gpu, const struct others_rules *rules, uint64_t passed, struct segment_borrowed *borrowed)
{
	struct gate *gate = &gates[gpu->number];
	unsigned int side = atomic_load(&gate->current);

	borrow(gate, &gate->views[side], passed, borrowed);
	if (atomic_load(&gate->readers[!side]) == 0 && others_see(&gate->views[!side], &gate->views[side], gpu->pci, rules)) {
		atomic_store(&gate->current, !side);
		epoch_raise_world();
		if (gate->views[!side].count > 0)
			listen();
	}
}

uint64_t gate_look(uint64_t now)
{
	uint64_t until = UINT64_MAX;

	for (struct gate *gate = gates; gate < gates + GPUS_MAX; gate++) {
		struct others_on_gpu *others = gate_enter(gate);

		if (atomic_load(&gate->measure.is_on))
			until = min_u64(until, now + max_u64(LOOK_NS, (now - min_u64(now, atomic_load(&gate->measure.began))) / 16));
		gate_measure(gate, others);
		gate_leave(gate, others);
	}
	return until;
}

void gates_after_fork(void)
{
	memset(gates, 0, sizeof gates);
	memset(&gate_state, 0, sizeof gate_state);
	gate_set_open(false);
	lengths_forget();
	streams_forget();
}
