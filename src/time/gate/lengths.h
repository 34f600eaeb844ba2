/*
 * How long launches take, by function and grid, or instance of a graph: a fixed table without a lock, in which what is new takes the
 * place of what was launched least. A length is measured by what the GPU counts: from when a launch goes, with nothing of the process
 * in flight, until it is seen to have ended by one that waits behind it, or by our thread, which is rung for it. No timestamp is
 * needed, so profilers do not disturb it (facts.md, "Releases").
 */
#ifndef NVTASKSET_TIME_GATE_LENGTHS_H
#define NVTASKSET_TIME_GATE_LENGTHS_H

#include "driver/calls.h"
#include "others.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct length {
	_Atomic uint64_t key;     /* 0: free */
	_Atomic uint64_t lengths; /* rules/lending.h; */
	_Atomic uint64_t ns;      /* and the longest of them; 0: not known; LENDING_NEVER: it must not be held up by half */
	_Atomic uint32_t launches;
	_Atomic uint64_t until;   /* of a graph: its nodes stay where they are until then, but for being called back */
};

/* Never NULL. */
struct length *lengths_find(const struct launched_work *work);

/* In the child of a fork, whose functions are others. */
void lengths_forget(void);

/* A launch that is measured on one GPU. All zero: none is. */
struct measure {
	atomic_bool is_on;
	atomic_flag is_looked_at; /* by one thread at a time */
	_Atomic uintptr_t stream; /* 0: it is a graph */
	_Atomic uint64_t began;
	bool is_borrowed;
	struct length *length;
	uint64_t key, limit_ns, looked;
	uint64_t ended; /* so many kernels had */
};

/* A launch goes that is alone; perhaps beyond the process's own part: whether it is measured. It will not run. Another one goes before
 * it has ended: behind it in its stream, it does not matter. */
bool measure_begin(struct measure *measure, const struct others_on_gpu *others, struct length *length,
                   const struct launched_work *work, bool is_borrowed);
void measure_drop(struct measure *measure);
void measure_disturb(struct measure *measure, const struct launched_work *work);

/* Sees whether it has ended. Returns whether it took longer than it may, beyond the process's own part. */
bool measure_look(struct measure *measure, const struct others_on_gpu *others);

#endif
