/*
 * Demand: whether a process has work in flight on a GPU. Exact: launched kernels minus ended kernels, by the GPU's
 * word (state/kernels/counts.h). With incomplete numbers, a process counts as working while the numbers move, and for
 * DEMAND_UNKNOWN_NS after. Pure (demand.c): the caller gives the time, in ns of a clock that never goes back.
 *
 * Two looks in a row with equal numbers and nothing in flight: no launch came between, and the process has been idle
 * since the first look, at least.
 */
#pragma once

#include "gpu/pci_address.h"
#include "state/kernels/counts_read.h"
#include "time/rules/rivals.h"

#define DEMAND_UNKNOWN_NS UINT64_C(100000000)

/* Closer looks are one look in the history. */
#define DEMAND_LOOK_NS UINT64_C(800000)

/* One of some 80 looks sees a gap of 50 us in each 4 ms. A process without a seen gap for this time has no gaps. */
#define DEMAND_GAPS_NS UINT64_C(500000000)

/* All zero: nothing was read yet. */
struct demand {
	bool is_known;       /* the ends of all kernels are known exactly */
	bool wants;          /* work is in flight */
	uint64_t launched, ended, in_flight;
	uint64_t moved;      /* the last change of the numbers: then, or since the look before */
	uint64_t idle_since; /* idle since then at least */
	uint64_t looked;
	uint64_t paused;     /* the last look without work, or the first look */
	uint64_t recorded;   /* the last look of the history */
	uint8_t history;     /* a bit for each of the last 8 looks that saw work; the last look is the lowest bit */
};

void demand_note(struct demand *demand, uint64_t now, const struct counts_of_gpu *counts);

/* How long the process has been idle, at least; 0 while work is in flight. */
static inline uint64_t demand_idle_ns(const struct demand *demand)
{
	return demand->looked - demand->idle_since;
}

/* Whether the process pauses now and then: a look within DEMAND_GAPS_NS saw no work. */
static inline bool demand_pauses(const struct demand *demand)
{
	return demand->looked - demand->paused < DEMAND_GAPS_NS;
}

/* Whether work is in flight, or the pause is short: work in one of the last 3 looks, and in 5 of the last 8. */
static inline bool demand_is_present(const struct demand *demand)
{
	return demand->wants || ((demand->history & 7) != 0 && __builtin_popcount(demand->history) >= 5);
}

/* --- the work of this process, by its own counts (driver/releases.h) ---------------------------------------------- */

struct work {
	uint64_t ended;         /* kernels */
	bool is_counted;        /* the ends of kernels are seen */
	struct rules_view view; /* wants if unknown; pauses and is present as on the GPU with most work */
	unsigned int gpu_count; /* GPUs with a context */
	struct work_on_gpu {
		struct pci_address pci;
		struct demand demand;
	} gpus[COUNTS_GPUS];
};

/* Looks at `now`; `work` is the result of the last look, or all zero. One thread at a time. */
void work_look(struct work *work, uint64_t now);
