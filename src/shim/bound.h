/*
 * The bound of all rules: while a program has work in flight on another GPU, too, nobody keeps it aside for longer than
 * BOUND_ASIDE_NS in one go. A program is put aside on all of its GPUs at once, and somebody may wait on one of them for its work
 * there, while it waits for them on another one: so it is back before it is put aside again. Pure: time is what the caller says.
 */
#ifndef NVTASKSET_SHIM_BOUND_H
#define NVTASKSET_SHIM_BOUND_H

#include <stdbool.h>
#include <stdint.h>

#define BOUND_ASIDE_NS UINT64_C(100000000)
#define BOUND_BACK_NS UINT64_C(10000000)

/* Members are bound.c's; only the first one is for others to read. All zero: nothing was seen yet. */
struct bound {
	uint64_t struck;  /* so often */
	bool is_striking; /* it is not to be aside */
	bool is_aside;
	uint64_t changed; /* since then */
};

/* `is_wanted`: a rule wants the program aside. Returns whether it is to be aside; `wake`: when to ask again at the latest,
 * UINT64_MAX if nothing needs it. */
bool bound_step(struct bound *bound, uint64_t now, bool is_wanted, unsigned int gpus_with_work, uint64_t *wake);

/* The program was put aside or taken back: the call that did it ended then. */
void bound_was_put_aside(struct bound *bound, uint64_t end);
void bound_was_taken_back(struct bound *bound, uint64_t end);

#endif
