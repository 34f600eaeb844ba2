/*
 * The way to the kernel driver, over which a program is put aside: what the CUDA driver asks the kernel driver shows it
 * (driver/kernel_client.h). Where the CUDA driver asks nothing by itself, one of the program's threads makes it ask, in a call of
 * the program's, since a context cannot go meanwhile.
 */
#ifndef NVTASKSET_SHIM_REACHING_H
#define NVTASKSET_SHIM_REACHING_H

#include <stdbool.h>

/* Whether this process may be a client of MPS: nobody's channels may be touched then. Once it was one, it stays one. */
bool reaching_is_of_mps(void);

/* From here on, the CUDA driver is watched. If it cannot be, or may be a client of MPS, that is an obstacle. May be
 * repeated. */
void reaching_begin(void);
void reaching_end(void);

/* For our thread: whether the way is known now. If not, the program's next calls are listened to. */
bool reaching_is_done(void);

/* In the program's threads: whether such a call is listened to. When it begins: whether the way became known by it. */
bool reaching_wants_call(int id);
bool reaching_call_begins(void);

void reaching_after_fork(void);

#endif
