/*
 * How long launches take, by function and grid, or instance of a graph: a fixed table without a lock, in which what is new takes
 * the place of what was measured longest ago. In each of two places: in the process's own part of the GPU, and where it has
 * more. It is the longest of the last four measurements there. A launch that was never in the latter, or is tried there again, is
 * taken to be as much faster there than in the shortest ones of the former as there are more TPCs, and runs alone.
 *
 * A launch is measured once in each turn, from when it goes, with nothing of the process in flight, until it is seen to have
 * ended. What the GPU counts says so (state/kernels/counts.h), and no timestamp is needed: so profilers do not disturb it
 * (facts.md, "Releases"). What was disturbed says nothing: by another launch, or by an owner of TPCs that came back. The first
 * launch of a function may take longer than all later ones: so a second measurement follows soon, and replaces it if it is shorter.
 */
#ifndef NVTASKSET_LAUNCH_ACCOUNT_LENGTHS_H
#define NVTASKSET_LAUNCH_ACCOUNT_LENGTHS_H

#include "driver/calls.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum length_place {
	LENGTH_PART,
	LENGTH_MORE
};

#define LENGTH_MEASURED 4
struct length {
	_Atomic uint64_t key; /* 0: free */
	struct length_there {
		_Atomic uint64_t ns[LENGTH_MEASURED]; /* 0: not yet */
		_Atomic uint32_t turn;                /* when one was to be measured last */
		_Atomic uint32_t tries;               /* so often, one after the other, it was tried again */
	} places[2];
	atomic_bool waits_for_others; /* it has no length of its own */
	_Atomic uint64_t until;       /* for the one who looks for it */
};

/* Raised from time to time: then each length is measured once. */
extern _Atomic uint32_t lengths_turn __attribute__((visibility("hidden")));

/* Never NULL. */
struct length *lengths_find(const struct launched_work *work);

/* The longest of late; 0: not known. */
uint64_t lengths_longest(const struct length *length, enum length_place place);

/* On `more` TPCs, where it takes as much less than on the `part` ones; 0: not known. What took longer than `limit` there is tried
 * again at once, and then after two turns, four and eight. Says whether it should run alone, to be measured. One could not, since
 * something in flight does not end: none asks for it again for some turns. */
#define LENGTH_NONE UINT64_MAX
uint64_t lengths_of(const struct length *length, unsigned int part, unsigned int more, uint64_t limit, bool *is_new);
void lengths_miss(void);

/* In the child of a fork, whose functions are others. */
void lengths_forget(void);

/* A launch that goes alone. */
struct measured {
	struct length *length;
	enum length_place place;
	uintptr_t stream; /* a number; 0: it is a graph */
	bool is_new;
	uint64_t open;    /* in the lower half a bit for each owner of its TPCs that is idle; in the upper one, for whom bits stand */
};

/* On one GPU. All zero: none is measured. */
struct measure {
	atomic_bool is_on;
	atomic_flag is_looked_at; /* by one thread at a time */
	_Atomic uintptr_t stream; /* the launch's, */
	_Atomic uint64_t began;
	_Atomic uint64_t delay;    /* within so much time after that it went */
	struct measured launch;   /* which is read by the one who looks */
	uint64_t key, looked, ended;
};

/* Such a launch goes, where so many kernels have ended before: whether it is measured. It does not run. Another one goes before
 * it has ended, into this stream: behind it in its own, it does not matter. */
bool measure_begin(struct measure *measure, const struct measured *launch, uint64_t ended);
void measure_called(struct measure *measure); /* its call has ended */
void measure_drop(struct measure *measure);
void measure_disturb(struct measure *measure, uintptr_t stream);

/* So many have ended by now, and are in flight; these owners are idle. Returns for how long it was seen to run where it has more,
 * once it has ended. */
uint64_t measure_look(struct measure *measure, uint64_t ended, uint64_t in_flight, uint64_t open);

#endif
