/*
 * How long launches take, by function and grid, or instance of a graph: a fixed table without a lock, in two places: in the
 * process's own part of the GPU, and where it has more. A length rises at once, and falls slowly. Where the table is full, what is
 * new takes the place of something else. For any thread.
 */
#ifndef NVTASKSET_LAUNCH_ACCOUNT_LENGTHS_H
#define NVTASKSET_LAUNCH_ACCOUNT_LENGTHS_H

#include "driver/calls.h"

#include <stdatomic.h>
#include <stdint.h>

enum length_place {
	LENGTH_PART,
	LENGTH_MORE
};

struct length {
	_Atomic uint64_t key;   /* 0: free */
	_Atomic uint32_t ns[2]; /* by place; 0: not known; at most four seconds are told apart */
	_Atomic uint64_t until; /* for the one who looks for it */
};

/* Never NULL. Its number is below LENGTHS, and finds it again. */
#define LENGTHS 8192
struct length *lengths_find(const struct launched_work *work);
unsigned int lengths_number(const struct length *length);
struct length *lengths_at(unsigned int number);

static inline uint64_t lengths_ns(const struct length *length, enum length_place place)
{
	return atomic_load_explicit(&length->ns[place], memory_order_relaxed);
}

/* One took so long. Nothing is noted where the length has become another one's: its key was this. */
void lengths_note(struct length *length, uint64_t key, enum length_place place, uint64_t ns);

/* What it takes where it has more falls by this part. */
void lengths_fall(struct length *length, uint32_t part);

/* In the child of a fork, whose functions are others. */
void lengths_forget(void);

#endif
