/*
 * The way to the kernel driver, by which a program is suspended: what the CUDA driver asks the kernel driver shows it
 * (driver/channels/kernel_client.h). Where the CUDA driver asks nothing by itself, one of the program's threads makes
 * it ask, in a call of the program's, since a context cannot go meanwhile.
 */
#ifndef NVTASKSET_TIME_TURNS_KERNEL_ACCESS_H
#define NVTASKSET_TIME_TURNS_KERNEL_ACCESS_H

#include <stdbool.h>

/* Whether this process may be a client of MPS: nobody's channels may be touched then. Once it was one, it stays one. */
bool kernel_access_is_of_mps(void);

/* From here on, the CUDA driver is watched. If it cannot be, or may be a client of MPS, the program is ineligible
 * (eligibility.h). May be repeated. */
void kernel_access_begin(void);
void kernel_access_end(void);

/* For our thread: whether the way is known now. If not, the program's next calls are listened to. */
bool kernel_access_is_done(void);

/* In the program's threads: whether such a call is listened to. When it begins: whether the way became known by it. */
bool kernel_access_wants_call(int id);
bool kernel_access_call_begins(void);

void kernel_access_after_fork(void);

#endif
