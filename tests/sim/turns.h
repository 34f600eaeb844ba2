/*
 * Programs that share a simulated GPU take turns: those that have work and are not put aside, each for its time slice, in a fixed
 * order (docs/facts.md, "Time slices"). They find each other in the file that SIM_GPU names, which is zeros at first; without
 * it, each has a GPU of its own. Nobody waits for anybody: from the clock, each finds out whose turn it is. Who has died takes
 * no turn.
 */
#ifndef SIM_TURNS_H
#define SIM_TURNS_H

#include <stdbool.h>
#include <stdint.h>

/* This process wants to run, with this time slice, from here on; or no more. Once for each of its contexts. */
void turns_begin(uint64_t slice_us);
void turns_end(void);

/* Whether it is this process's turn, and until when that stays so: it may change when others come and go. */
bool turns_is_mine(uint64_t now_ns, uint64_t *until_ns);

#endif
