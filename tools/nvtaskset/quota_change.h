/* Quotas that are given to running processes. */
#ifndef NVTASKSET_QUOTA_CHANGE_H
#define NVTASKSET_QUOTA_CHANGE_H

#include "base/error.h"
#include "state/segment.h"

#include <sys/types.h>

/* -1 with the reason if the process is a client of MPS, or may be one. */
int quota_check(pid_t pid, struct segment_quota quota, struct error *error);

/* Until when to wait for those that were changed now, by clock_ms. */
double quota_wait_end(void);

/* Waits until our thread in the process has seen the edit. Without one, it holds from the program's next call on. */
void quota_wait(const struct segment *segment, double end_ms);

/* Why the quota will not be in force, by what the process says of its time; NULL if it may be. */
const char *quota_refusal(const struct segment_time *time, struct segment_quota quota);

#endif
