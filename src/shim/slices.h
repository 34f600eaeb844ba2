/*
 * For how long at once this program runs, while others want to run, too: the time slices of all of its groups of channels
 * (driver/channels.h), of contexts that come meanwhile, too. What is wanted is rules.h's.
 *
 * Not for clients of MPS, whose channels are the server's. All others may have short ones, also those that may never be put aside
 * (obstacle.h): a program with a short slice goes on by itself, and its page faults and those who wait for it only take longer, as
 * beside any other program.
 *
 * For our thread alone.
 */
#ifndef NVTASKSET_SHIM_SLICES_H
#define NVTASKSET_SHIM_SLICES_H

#include "sight.h"

#include <stdbool.h>
#include <stdint.h>

/* From here on it has its own ones. */
void slices_begin(void);

/* Gives it slices of `wanted_us`; 0: its own ones. Asks the kernel driver only if that is another wish, or channels are new. A
 * kernel driver that refuses again and again is asked no more. Returns whether anything has changed. */
bool slices_obey(uint64_t wanted_us, const struct sight *sight);

/* Warns, once, of a kernel driver that is asked no more. Not while the program is aside: who reads our warnings may be slow. */
void slices_say_refusal(void);

/* The program has its own ones again. */
void slices_end(void);

#endif
