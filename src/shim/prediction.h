/*
 * How long a launch will be on the GPU: as long as those before it that were the same. This is TimeGraph's history of
 * costs (Kato et al., USENIX ATC 2011, 5.3), where a group of GPU commands is known by its methods and the sizes of its
 * data. Here a launch is known by its function, its grid and how many TPCs it may use; a graph's by its instance, as one.
 *
 * What is predicted is a mean of what came, in which the last ones count most. A launch that was never seen is predicted
 * to take as long as the longest that is known. The paper adds what a switch of contexts costs; under MPS there is none.
 *
 * How long a launch took is measured elsewhere (state/times.h, an estimate). Nothing here reads a clock, allocates, waits
 * or calls anything: a history is as large as it will ever be, and one that is all zero knows nothing. If it is full,
 * what was learnt longest ago makes room.
 *
 * Times are in ns. Threads: any thread may ask and forget at any time; one thread at a time learns and looks at what was
 * learnt, which is ours (presence_thread.h). Who asks meanwhile gets what was so before or what is so after.
 */
#ifndef NVTASKSET_SHIM_PREDICTION_H
#define NVTASKSET_SHIM_PREDICTION_H

#include "state/predictions.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A launch has its place in one of the sets, by its key. */
#define PREDICTION_SETS 256
#define PREDICTION_WAYS 4
#define PREDICTION_RECORDS ((size_t)PREDICTION_SETS * PREDICTION_WAYS)

/* No launch is predicted to be longer, whatever was measured; and predictions are rounded to so much. */
#define PREDICTION_MOST_NS UINT64_C(60000000000)
#define PREDICTION_UNIT_NS UINT64_C(16)

/* Launches with the same key are taken for the same. */
struct prediction_key {
	const void *what; /* a function, or the instance of a graph; not NULL */
	uint32_t grid[3]; /* in blocks; 0 of a graph */
	uint32_t tpcs;    /* that it may use */
};

struct prediction {
	uint64_t ns;   /* 0: nothing is known at all */
	bool is_known; /* false: it is as the longest that is known */
};

/* Members are prediction.c's. */
struct prediction_record {
	_Atomic uint64_t word; /* by which key it is found, and what it predicts; 0: there is none */
	_Atomic(const void *) what;
	/* The rest is the learning thread's. */
	struct prediction_key key;
	uint64_t called; /* what stamps call it; 0: as the key says */
	uint64_t mean_ns;
	uint32_t launches; /* that the mean is of, up to how many count */
	uint64_t learnt;   /* when, in launches that were learnt */
	struct prediction_quality quality;
};

struct prediction_history {
	struct prediction_record records[PREDICTION_SETS][PREDICTION_WAYS];
	_Atomic uint64_t longest_ns;
	atomic_bool has_forgotten; /* perhaps the longest one */
	uint64_t learnt;
	struct prediction_quality quality; /* of all launches, also of those that are not in the records any more */
};

/* In the launch path. */
struct prediction prediction_ask(const struct prediction_history *history, const struct prediction_key *key);

/* A launch of which this was predicted has ended, and took so long. */
void prediction_learn(struct prediction_history *history, const struct prediction_key *key, struct prediction predicted,
                      uint64_t came_ns);

/* What stamps call a function of which something was learnt (state/stamps.h): the driver takes other handles for it, too, as a
 * CUkernel. */
void prediction_call(struct prediction_history *history, const struct prediction_key *key, uint64_t called);

/* The function or instance is gone, and another one may get its handle; NULL: all functions and instances. What is learnt
 * at the same time may stay, and is then corrected as it comes. */
void prediction_forget(struct prediction_history *history, const void *what);

/* Copies record `number`, 0 … PREDICTION_RECORDS - 1: what is known of those launches, and how good that was. False if
 * there is none. */
struct prediction_known {
	struct prediction_key key;
	uint64_t called; /* what stamps call the function or instance */
	uint64_t mean_ns;
	struct prediction_quality quality;
};
bool prediction_read(const struct prediction_history *history, size_t number, struct prediction_known *known);

#endif
