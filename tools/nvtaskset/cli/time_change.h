/* What programs are given of the time: whether they can have it, at the start and while they run. */
#ifndef NVTASKSET_CLI_TIME_CHANGE_H
#define NVTASKSET_CLI_TIME_CHANGE_H

#include "base/error.h"
#include "state/segment/segment.h"

#include <sys/types.h>

/* -1 with the reason if a policy is wanted for one that would have nothing that holds launches back: neither what it `has` nor
 * what is `wanted`. */
int time_check_policy(const struct segment_revision *has, const struct segment_revision *wanted, struct error *error);

/* -1 with the reason if the process, which `has` this, cannot have what is `wanted` of the time: a client of MPS, or who may be
 * one, a weight; and who is none, a policy. */
int time_check(pid_t pid, const struct segment_revision *has, const struct segment_revision *wanted, struct error *error);

/* Until when to wait for those that were changed now, by clock_ms. */
double time_wait_end(void);

/* Waits until our thread in the process has seen the edit. Without one, it holds from the program's next call on. */
void time_wait(const struct segment *segment, double end_ms);

/* Why what `revision` gives will not be in force, by what the process says of its time; NULL if it may be. */
const char *time_refusal(const struct segment_time *time, const struct segment_revision *revision);

#endif
