/*
 * Programs that share a simulated GPU. They find each other in the file that SIM_GPU names, which is zeros at first; without it,
 * each has a GPU of its own.
 *
 * They take turns: those that have work and are not suspended, each for its time slice, in a fixed order, and nobody runs while the
 * GPU changes from one to the next (facts.md, "Time slices"). Nobody waits for anybody: from the clock, each finds out whose turn
 * it is. Clients of MPS (where its pipe is) run side by side: those that share a TPC get equal parts of it, so that their kernels
 * take longer. Whoever has died takes nothing. Clients and others do not see each other.
 */
#ifndef SIM_TURNS_H
#define SIM_TURNS_H

#include "gpu/tpcset.h"

#include <stdint.h>

/* This process wants to run on these TPCs, with this time slice, from here on; or no more. Once for each of its contexts. */
void turns_begin(uint64_t slice_us, const struct tpcset *tpcs);
void turns_end(void);

/* How much of itself this process gets now, between 0 and 1; and until when at most that stays so. */
double turns_share(uint64_t now_ns, uint64_t *until_ns);

#endif
