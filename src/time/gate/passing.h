/* A launch passes the gate (gate.h): from its call's entry until it goes, and until that has ended. For the program's threads. */
#ifndef NVTASKSET_TIME_GATE_PASSING_H
#define NVTASKSET_TIME_GATE_PASSING_H

#include "driver/calls.h"
#include "gates.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct passage {
	uint64_t where;
	bool is_entering, is_measured;
	struct length *moved; /* a graph whose nodes the call uploads anew */
};

/* What a thread's last launch was decided from: while none of it changes, launches of the same kernel go as it did. */
struct gate_last {
	uint64_t world; /* 0: nothing is remembered */
	CUcontext context;
	struct call_kernel kernel;
	struct counts_words words;
	const _Atomic uint64_t *launched, *ended; /* as long as there are at most so many between */
	int64_t most;
};

/* A launch has come, and goes when this returns; then `last` says which ones go like it. Its call has ended. */
struct passage pass(struct gate *gate, const struct call *call, struct gate_last *last);
void passed(struct gate *gate, const struct call *call, const struct passage *passage);

#endif
