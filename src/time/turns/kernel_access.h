/*
 * The way to the kernel driver, for suspensions: the CUDA driver's own requests show the way
 * (driver/channels/kernel_client.h). Without requests, a thread of the program provokes a request, in a call of the
 * program: a context cannot go meanwhile.
 */
#pragma once

#include <stdbool.h>

/* Whether this process may be a client of MPS: no channels may be touched then. Once a client, always a client. */
bool kernel_access_is_of_mps(void);

/* Watches the CUDA driver from here on. If watching fails, or under MPS, the program is ineligible (eligibility.h).
 * May be repeated. */
void kernel_access_begin(void);
void kernel_access_end(void);

/* For our thread: looks for the way, by a request in an active primary context (calls the CUDA driver). True if the way
 * is known; otherwise listens to the program's next calls. */
bool kernel_access_find(void);

/* In the program's threads: whether to listen to a call; at the begin of the call: whether a request was provoked. */
bool kernel_access_wants_call(int id);
bool kernel_access_call_begins(void);

void kernel_access_after_fork(void);
