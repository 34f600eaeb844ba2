/*
 * How long a process's launches were predicted to be on the GPU, and how long they were, as its owner says in its segment.
 * shim/prediction.h says how that is predicted.
 *
 * Only the functions and graphs that were launched most often have a place there.
 */
#ifndef NVTASKSET_PREDICTIONS_H
#define NVTASKSET_PREDICTIONS_H

#include <stdbool.h>
#include <stdint.h>

struct segment;
struct segment_memory;

/* Predictions and what came. `error_ns` is the sum of how far each was from what came. Launches of which nothing was
 * known are in `unknown` only. */
struct prediction_quality {
	uint64_t known, unknown; /* launches */
	uint64_t predicted_ns, came_ns, error_ns;
};

/* Without wrapping around: a process can write anything into its segment. */
void prediction_quality_add(struct prediction_quality *to, const struct prediction_quality *quality);

#define PREDICTIONS_MAX 64

struct predictions {
	struct prediction_quality all; /* also of those that have no place in the list */
	unsigned int count;
	struct prediction_of {
		uint64_t what; /* what the owner calls the function, or the instance of a graph (stamps.h) */
		bool is_graph;
		struct prediction_quality quality;
	} list[PREDICTIONS_MAX];
};

/* The owner's side: one thread at a time. No call waits or allocates. */
void predictions_publish(const struct segment *segment, const struct predictions *predictions);

/* Nothing was published yet. */
void predictions_forget(struct segment_memory *memory);

/* Copies what was published last. False if nothing was, or others overtook the copy again and again, or it is no list. The
 * numbers may be anything. */
bool predictions_read(const struct segment *segment, struct predictions *predictions);

#endif
