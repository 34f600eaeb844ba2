/*
 * How long launches take, by function and grid, or instance of a graph: a fixed table without a lock. A length has two
 * durations: LENGTH_PART on the process's own TPCs, LENGTH_MORE with lent TPCs too. A duration rises at once, and falls
 * slowly. In a full table, a new length takes the place of an old length. For any thread.
 */
#pragma once

#include "driver/calls.h"

#include <stdatomic.h>

enum length_place {
	LENGTH_PART,
	LENGTH_MORE
};

struct length {
	_Atomic uint64_t key;   /* 0: free */
	_Atomic uint32_t ns[2]; /* by enum length_place; 0: not known; at most four seconds are told apart */
	_Atomic uint64_t until; /* the gate: a graph gets lent TPCs only from then on, in process_clock_ns */
};

/* Never NULL. The number is below LENGTHS, and leads back to the length. */
#define LENGTHS 8192
struct length *lengths_find(const struct launched_work *work);
unsigned int lengths_number(const struct length *length);
struct length *lengths_at(unsigned int number);

static inline uint64_t lengths_ns(const struct length *length, enum length_place place)
{
	return atomic_load_explicit(&length->ns[place], memory_order_relaxed);
}

/* A launch took `ns`. Nothing is noted if the length does not have this key any more. */
void lengths_note(struct length *length, uint64_t key, enum length_place place, uint64_t ns);

/* Lowers the length in LENGTH_MORE, by 1 / `part`. */
void lengths_fall(struct length *length, uint32_t part);

/* In the child of a fork, with functions of its own. */
void lengths_forget(void);
