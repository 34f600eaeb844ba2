/*
 * How this program is put aside and taken back: all of its channels (driver/channels.h), of contexts that come meanwhile,
 * too. It is judged by its effect: if kernels still end while it is aside, that is an obstacle, as is a kernel driver that
 * refuses again and again. Who wants it aside, and until when, is rules.h's.
 *
 * For our thread alone.
 */
#ifndef NVTASKSET_SHIM_ASIDE_H
#define NVTASKSET_SHIM_ASIDE_H

#include "sight.h"

#include <stdbool.h>
#include <stdint.h>

/* When a call of the kernel driver's began and ended, in ns of process_clock_ns. */
struct aside_call {
	uint64_t begin, end;
};

/* From here on it is not aside, and nothing was judged. */
void aside_begin(void);

bool aside_is(void);

/* Puts it aside, whole or not at all: false if there is an obstacle or the kernel driver refuses. Takes it back. */
bool aside_put(struct aside_call *call);
void aside_take_back(struct aside_call *call);

/* Before each decision: judges, and looks for channels that are new, shortly before they are needed: the program is not put
 * aside before `soonest`. Returns when to look again at the latest; UINT64_MAX if nothing needs it. */
uint64_t aside_look(uint64_t now, const struct sight *sight, uint64_t soonest);

#endif
