/*
 * Time without MPS: programs take turns on a GPU. This program is suspended and resumed (suspend.h), and runs for shorter or longer
 * at once (timeslice.h), as its rules say (time/rules/rules.h). The way to do so is the kernel driver's (kernel_access.h); a
 * program that must never wait is not suspended (eligibility.h).
 *
 * For our thread alone.
 */
#ifndef NVTASKSET_TIME_TURNS_TURNS_H
#define NVTASKSET_TIME_TURNS_TURNS_H

#include "state/segment/segment.h"

#include <stdbool.h>
#include <stdint.h>

/* A thread has begun, for the rules of this segment. */
void turns_begin(const struct segment *segment);

/* Looks at the program and at the others, and does what the rules say. `number`: of the revision that they are from. Returns when
 * to look again; `is_idle`: the program has no work, and nothing happens before its next launch. */
uint64_t turns_look(uint64_t number, bool *is_idle);

/* The rules have changed, or take part for the first time: the program is resumed if the first look at others may take long. */
void turns_make_ready(void);

/* The program is resumed, and has its own time slices. */
void turns_end(void);

/* Says once why the rules do not hold any more, if so. The program is resumed. */
void turns_report(uint64_t number);

#endif
