/*
 * When the launches of one graph were on the GPU: an estimate.
 *
 * Each launch of a graph writes its timestamps over those of the launch before. A reader who looks now and then sees
 * the end of one launch of many, and how long it took. Between two that were seen, the launches one after the other are
 * taken to be as long as those that were seen.
 *
 * Times are the processor's. Nothing here reads a clock, or memory of others.
 */
#ifndef NVTASKSET_MONITOR_ESTIMATE_REPLAYS_H
#define NVTASKSET_MONITOR_ESTIMATE_REPLAYS_H

#include "times.h"

#define REPLAYS_WAITING 2048

/* All zero is a graph that was never launched. */
struct replays {
	uint64_t launched[REPLAYS_WAITING]; /* those that have not ended: number n is at n % REPLAYS_WAITING */
	uint64_t first, next;
	uint64_t end;       /* of the last one that has ended; 0: none has */
	uint64_t length_ns; /* of one launch; 0: not known yet */
};

/* It was launched. False if too many wait: this one is not taken into account. */
bool replays_launch(struct replays *replays, uint64_t launched_ns);

/* The end of its last kernel was seen, `length_ns` after the begin of that launch, 0 if that is not known. `none_is_left`:
 * nothing of the graph is on the GPU. Adds when it was busy. Returns how many launches have ended. */
uint64_t replays_see_end(struct replays *replays, struct times *times, const struct times_ways *ways, uint64_t end,
                         uint64_t length_ns, bool none_is_left, unsigned int tpcs);

/* Those that are left run, or wait, at `now`. */
void replays_see_running(const struct replays *replays, struct times *times, const struct times_ways *ways, uint64_t now,
                         unsigned int tpcs);

/* The number of the first launch that was not made before this time, or that of the next one. */
uint64_t replays_after(const struct replays *replays, uint64_t time);

/* Those with a smaller number have ended, and it is not known when. Returns how many. */
uint64_t replays_drop(struct replays *replays, uint64_t number);

#endif
